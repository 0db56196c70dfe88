"""The Inspect task of a suite that runs programs, in a box of ours or a sandbox of Inspect's."""

from importlib import resources
from typing import Any

import anyio.to_thread
from inspect_ai import Task
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import SandboxEnvironmentSpec, parse_compose_yaml

from harness.boxes import BoxFacts
from harness.errors import UserError
from harness.suite import Split, Suite
from harness.task import as_task
from sandbox import IMAGE, Box, SandboxError, open_box
from suites.inspect_box import InspectBox

COMPOSE = str(resources.files("sandbox") / "compose.yaml")
"""The compose file that gives Inspect's docker sandbox the limits of our docker box."""


def boxed_task(
    suite: Suite[Any],
    box: str | None,
    *,
    split: Split = "eval",
    limit: int | None = None,
    epochs: int = 1,
    max_sandboxes: int | None = None,
) -> Task:
    """Return the task that runs programs in the box called `box`, for `inspect eval`.

    Without a box it is Inspect's docker sandbox under our limits, which `--sandbox` may change. At
    most `max_sandboxes` programs run at once (None: as many as there are cores).
    UserError when the box is unknown or lacks something; what an Inspect sandbox lacks fails the
    first sample, before its first model call.
    """
    opened, said = (
        _ready(box, suite.image, max_sandboxes) if box is not None else (InspectBox(), {})
    )
    made = as_task(
        suite,
        split=split,
        limit=limit,
        epochs=epochs,
        box=opened,
        max_sandboxes=max_sandboxes,
        metadata=said,
    )
    if box is None:
        made.sandbox, made.setup = compose(suite.image), sandbox_checked()
    return made


def compose(image: str = IMAGE) -> SandboxEnvironmentSpec:
    """Return Inspect's docker sandbox with the limits of our docker box and this image."""
    if image == IMAGE:
        return SandboxEnvironmentSpec("docker", COMPOSE)
    config = parse_compose_yaml(COMPOSE)
    config.services["default"].image = image
    return SandboxEnvironmentSpec("docker", config)


@solver
def sandbox_checked() -> Solver:
    """Return a solver that refuses a sandbox that cannot judge, and writes down what it is.

    Only the first samples of a task ask their sandboxes: the others have the same.
    """
    found: dict[str, dict[str, Any]] = {}

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        box = InspectBox()
        try:
            if box.name not in found:
                facts = await anyio.to_thread.run_sync(box.facts)
                said = BoxFacts.model_validate(facts).model_dump(mode="json", exclude_none=True)
                found[box.name] = {**said, "packages": len(facts.packages)}
            state.metadata["box"] = box.name
            state.metadata["box_facts"] = found[box.name]
        except SandboxError as error:
            raise UserError(str(error)) from error
        return state

    return solve


def _ready(name: str, image: str, max_sandboxes: int | None) -> tuple[Box, dict[str, Any]]:
    """Return a box of ours, asked before any model is, and what a log says of it."""
    try:
        box = open_box(name, max_sandboxes)
        facts = BoxFacts.model_validate(box.facts(image))
    except SandboxError as error:
        raise UserError(str(error)) from error
    return box, {"box": name, "box_facts": facts.model_dump(mode="json")}
