"""The Inspect task of a suite that runs programs, in a box of ours or a sandbox of Inspect's."""

import re
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from typing import Any

import anyio
import anyio.to_thread
from inspect_ai import Task
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import SandboxEnvironmentSpec, parse_compose_yaml

from harness.boxes import BoxRecord, refuse_lacking
from harness.context import PLACE, offer_public_tests, public_tests_of, run_context
from harness.errors import UserError
from harness.inspect_adapters import as_task
from harness.parallel import cores
from harness.suite import Split, Suite
from sandbox import IMAGE, Box, Limits, SandboxError, open_box
from sandbox.docker_box import SLACK_BYTES
from sandbox.images import RECIPES, pinned_packages
from suites.inspect_box import InspectBox

COMPOSE = str(resources.files("sandbox") / "compose.yaml")
"""The compose file that gives Inspect's docker sandbox the limits of our docker box."""

LACKING = (
    "The {} sandbox lacks {} packages that programs may import, such as {}: use the image {}, as "
    "podium's sandbox/compose.yaml does (podium sandbox build makes it)."
)


def boxed_task(
    suite: Suite[Any],
    box: str | None,
    *,
    split: Split = "eval",
    limit: int | None = None,
    epochs: int = 1,
    max_sandboxes: int | None = None,
    limits: Limits = Limits(),  # noqa: B008
) -> Task:
    """Return the task that runs programs in the box called `box`, for `inspect eval`.

    Without a box it is Inspect's docker sandbox under our limits, which `--sandbox` may change. At
    most `max_sandboxes` programs run at once (None: as many as there are cores); `limits` are those
    that the suite runs them under.
    UserError when the box is unknown or lacks something; what an Inspect sandbox lacks fails the
    first sample, before its first model call.
    """
    opened, said = (
        _ready(box, suite, max_sandboxes) if box is not None else (InspectBox(limits), {})
    )
    places = anyio.CapacityLimiter(max_sandboxes or cores())
    with run_context(replace(PLACE.get(), at_once=places)):
        made = as_task(suite, split=split, limit=limit, epochs=epochs, box=opened, metadata=said)
    before: list[Solver] = []
    if box is None:
        made.sandbox = compose(suite.image, limits)
        before.append(sandbox_checked(suite.image, limits))
    trial = public_tests_of(suite, opened, places)
    if trial:
        before.append(offer_public_tests(trial))
    if before:
        made.setup = before
    return made


def compose(image: str = IMAGE, limits: Limits = Limits()) -> SandboxEnvironmentSpec:  # noqa: B008
    """Return Inspect's docker sandbox as our docker box would be: this image, these limits."""
    if image == IMAGE and limits.memory_bytes == Limits().memory_bytes:
        return SandboxEnvironmentSpec("docker", COMPOSE)
    config = parse_compose_yaml(COMPOSE)
    service = config.services["default"]
    service.image = image
    service.mem_limit = f"{(limits.memory_bytes + SLACK_BYTES) >> 20}m"
    service.memswap_limit = service.mem_limit
    return SandboxEnvironmentSpec("docker", config)


@solver
def sandbox_checked(image: str = IMAGE, limits: Limits = Limits()) -> Solver:  # noqa: B008
    """Return a solver that refuses a sandbox that cannot judge, and writes down what it is.

    It must have the packages of `image`, whatever image it is made of: a program that cannot import
    one is not wrong. Only the first samples of a task ask: the others' sandboxes are the same.
    """
    found: dict[str, dict[str, Any]] = {}

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        box = InspectBox(limits)
        try:
            if box.name not in found:
                facts = await anyio.to_thread.run_sync(box.facts)
                if lacking := _lacking(image, facts.packages):
                    raise SandboxError(LACKING.format(box.name, len(lacking), lacking[0], image))
                said = BoxRecord.model_validate(facts).model_dump(mode="json", exclude_none=True)
                found[box.name] = {**said, "packages": len(facts.packages)}
            state.metadata["box"] = box.name
            state.metadata["box_facts"] = found[box.name]
        except SandboxError as error:
            raise UserError(str(error)) from error
        return state

    return solve


def _lacking(image: str, packages: Sequence[str]) -> list[str]:
    """Return the packages of an image of ours that are not among these, as `name==version`."""
    present = {_name(one) for one in packages}
    wanted = [
        pin
        for recipe in RECIPES.values()
        if recipe.image == image
        for pin in pinned_packages(recipe.requirements)
    ]
    return [pin for pin in wanted if _name(pin) not in present]


def _name(pin: str) -> str:
    """Return the name in a pin, written as package indexes compare names."""
    return re.sub(r"[-_.]+", "-", pin.partition("==")[0]).lower()


def _ready(name: str, suite: Suite[Any], max_sandboxes: int | None) -> tuple[Box, dict[str, Any]]:
    """Return a box of ours, asked before any model is, and what a log says of it."""
    try:
        box = open_box(name, max_sandboxes)
        facts = BoxRecord.model_validate(box.facts(suite.image))
    except SandboxError as error:
        raise UserError(str(error)) from error
    refuse_lacking(suite, name, facts.packages)
    return box, {"box": name, "box_facts": facts.model_dump(mode="json")}
