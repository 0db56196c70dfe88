"""All objects of podium that Inspect finds: tasks, solvers and model providers."""

from inspect_ai._util.registry import (
    RegistryInfo,
    is_registry_object,
    registry_add,
    registry_info,
)
from inspect_ai.model import ModelAPI, modelapi

from podium.baselines import _registry as baselines
from podium.baselines.common import SOLVERS
from podium.conductor import _registry as conductor
from podium.harness import _registry as harness
from podium.suites import _registry as suites


@modelapi(name="podium")
def podium() -> type[ModelAPI]:
    """Return the class of Inspect models `podium/SYSTEM` (podium/cli/named_models.py)."""
    from podium.cli.named_models import NamedSystemAPI

    return NamedSystemAPI


def keep_old_name(registered: object, room: str) -> None:
    """Register a task or solver also by its old name, e.g. `suites/aime25`; ignore other objects.

    `room`: the first part of the old name.
    """
    if not is_registry_object(registered):
        return
    info = registry_info(registered)
    if info.type not in ("task", "solver"):
        return
    old_name = f"{room}/{info.name.rpartition('/')[2]}"
    registry_add(registered, RegistryInfo(type=info.type, name=old_name, metadata=info.metadata))
    registry_add(registered, info)  # last, so that it keeps this name


NAMED_BY_ROOM = (
    ("suites", vars(suites).values()),
    ("conductor", vars(conductor).values()),
    ("baselines", (*vars(baselines).values(), *SOLVERS.values())),
    ("harness", vars(harness).values()),  # providers, which Inspect finds by any prefix
)
for room, objects in NAMED_BY_ROOM:
    for registered in objects:
        keep_old_name(registered, room)
