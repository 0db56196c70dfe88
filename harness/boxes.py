"""Choose and check the box (sandbox) for model-written programs, before any model is called."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from podium.harness.errors import UserError
from podium.harness.parallel import cores
from podium.harness.suite import NeedsPackages, Suite

SUBPROCESS, DOCKER = "subprocess", "docker"
NO_ENGINE = (
    "Model-written programs run in --box docker by default, and it is not available: "
    "{why} (Or use --box bwrap, which isolates with namespaces, or --box subprocess, which only "
    "sets limits: its programs can reach your files and your network.)"
)
DIGITS = 12  # shown digits of an image id, as many as the engine lists


class BoxRecord(BaseModel):
    """Python and packages of a box (sandbox), as logged; fields as in `sandbox.SandboxFacts`."""

    model_config = ConfigDict(extra="ignore", frozen=True, from_attributes=True)

    python: str  # Version of the Python inside, e.g. `3.11.2`.
    image: str | None = None
    image_id: str | None = None
    packages: tuple[str, ...] = ()  # importable third-party packages, as `name==version`

    @property
    def short(self) -> str:
        """The Python and the image as text, e.g. `Python 3.11.2, podium-sandbox 9f86d081884c`."""
        digest = (self.image_id or "").removeprefix("sha256:")[:DIGITS]
        image = f", {self.image} {digest}".rstrip() if self.image else ""
        return f"Python {self.python}{image}"


@dataclass(frozen=True, slots=True)
class Boxes:
    """Functions that open and describe boxes (sandboxes); all their errors are UserErrors."""

    open: Callable[[str, int | None], Any]  # (name, parallel programs; None: one per core) -> box
    describe: Callable[[Any, str], Any]  # box, image -> an object with `BoxRecord`'s fields
    engine: Callable[[], str]  # () -> why no container engine can be used; empty if one can


@dataclass(frozen=True, slots=True)
class OpenBox:
    """An open box (sandbox), and the Python and packages in it for the programs of each suite."""

    name: str
    box: Any
    facts: Mapping[str, BoxRecord]  # By suite: two suites may need two images
    most: int  # maximum programs that run in parallel

    @property
    def image_ids(self) -> dict[str, str]:
        """Suite -> id of its container image, if any; runs on other images are not comparable."""
        return {suite: record.image_id for suite, record in self.facts.items() if record.image_id}


@contextmanager
def open_run_box(
    boxes: Boxes, name: str | None, suites: Iterable[Suite[Any]], limit: int | None = None
) -> Generator[OpenBox | None]:
    """Open and yield the sandbox `name`, or yield None without a name.

    Raises UserError if the sandbox lacks packages that `suites` need.
    """
    if limit is not None and limit < 1:
        raise UserError(f"--max-sandboxes must be at least 1, not {limit}.")
    if name is None:
        yield None
        return
    box = boxes.open(name, limit)
    try:
        needing = [suite for suite in suites if suite.needs_box]
        images = {
            image: BoxRecord.model_validate(boxes.describe(box, image))
            for image in dict.fromkeys(suite.image for suite in needing)
        }
        facts = {suite.name: images[suite.image] for suite in needing}
        for suite in needing:
            refuse_lacking(suite, name, facts[suite.name].packages)
        yield OpenBox(name, box, facts, limit or cores())
    finally:
        box.close()


def refuse_lacking(suite: Suite[Any], box: str, packages: Sequence[str]) -> None:
    """Raise UserError if a suite's replies cannot be graded in a box with these packages."""
    if isinstance(suite, NeedsPackages) and (refusal := suite.refusal(box, packages)):
        raise UserError(refusal)


def refuse_unknown(boxes: Boxes, name: str | None) -> None:
    """Raise UserError if the sandbox `name` cannot be opened, even if no program will need it."""
    with open_run_box(boxes, name, ()):
        pass


def select_box(name: str | None, boxes: Boxes, *, ours: bool = False) -> str:
    """Return the name of the sandbox to use: `name`, else `subprocess` if `ours`, else `docker`.

    `ours` means that only programs of rehearsal workers run. Raises UserError if docker is the
    default and is not available.
    """
    if name or ours:
        return name or SUBPROCESS
    if reason := boxes.engine():
        raise UserError(NO_ENGINE.format(why=reason))
    return DOCKER


def inspect_box(
    boxes: Boxes, name: str, suites: Iterable[Suite[Any]]
) -> tuple[list[str], list[str]]:
    """Return (sentences on a sandbox's Python and packages, sentences on what suites lack)."""
    lines: dict[str, None] = {}
    lacked: dict[str, list[str]] = {}
    needing = [suite for suite in suites if suite.needs_box]
    try:
        with open_run_box(boxes, name, ()) as box:
            for image in dict.fromkeys(suite.image for suite in needing):
                served = [suite.name for suite in needing if suite.image == image]
                try:
                    facts = BoxRecord.model_validate(boxes.describe(box and box.box, image))
                except UserError as error:
                    lacked.setdefault(str(error), []).extend(served)
                else:
                    n = len(facts.packages) or "no"
                    has = f"{n} third-party package{'' if n == 1 else 's'}"
                    lines[f"Box {name!r}: {facts.short}, {has}."] = None
    except UserError as error:
        return list(lines), [str(error)]
    return list(lines), [f"for {', '.join(names)}: {reason}" for reason, names in lacked.items()]
