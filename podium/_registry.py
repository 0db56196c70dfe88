"""Everything of podium that Inspect finds: tasks, solvers and model providers.

They are registered as `podium/NAME`. Logs and commands of before podium 0.2 name them by their room
(`suites/aime25`, `baselines/moa_lite`), so those names are registered, too: entry points of these
names lead here.
"""

from inspect_ai._util.registry import (
    RegistryInfo,
    is_registry_object,
    registry_add,
    registry_info,
)

import podium.baselines._registry
import podium.conductor._registry
import podium.harness._registry
import podium.suites._registry
from podium.baselines.common import SOLVERS


def keep_old_name(registered: object, room: str) -> None:
    """Register a task or solver under the name of its room as well."""
    if not is_registry_object(registered):
        return
    info = registry_info(registered)
    if info.type not in ("task", "solver"):
        return
    old_name = f"{room}/{info.name.rpartition('/')[2]}"
    registry_add(registered, RegistryInfo(type=info.type, name=old_name, metadata=info.metadata))
    registry_add(registered, info)  # which says what its name is


for task in vars(podium.suites._registry).values():
    keep_old_name(task, "suites")
for solver in vars(podium.conductor._registry).values():
    keep_old_name(solver, "conductor")
for solver in (*vars(podium.baselines._registry).values(), *SOLVERS.values()):
    keep_old_name(solver, "baselines")
