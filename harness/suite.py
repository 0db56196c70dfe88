"""A `Suite` is an exam; this file also holds the one adapter from a `Grade` to Inspect's `Score`.

Grading is a plain function of (question, reply), so that the function which scores an evaluation is
the function which rewards training. A suite that runs programs is handed a box; `BoxT` keeps this
file free of sandbox/.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeVar, runtime_checkable

from harness.records import Grade, Question

Split = Literal["train", "validation", "eval"]
"""`train` teaches routers and conductors, `validation` sets thresholds, `eval` is the exam."""


BoxT = TypeVar("BoxT", contravariant=True)


class Suite(Protocol[BoxT]):
    """An exam: questions, and a grader that is software with a version."""

    @property
    def name(self) -> str:
        """The name on the command line and in tables, e.g. `aime25`."""
        ...

    @property
    def version(self) -> str:
        """Inspect-style comparability version: `1-A` (number: scores; letter: interface)."""
        ...

    @property
    def data_revision(self) -> str:
        """What pins the data: a hub commit, a sha256, or a generator's version and seed."""
        ...

    @property
    def dates(self) -> str:
        """When the questions became public, e.g. `2025-02`; `generated` for practice suites."""
        ...

    @property
    def splits(self) -> tuple[Split, ...]:
        """The splits that exist; a suite with only `eval` can train nothing."""
        ...

    @property
    def publishable(self) -> bool:
        """False when question texts may appear in no page, report or export."""
        ...

    @property
    def needs_box(self) -> bool:
        """True when grading runs model-written programs."""
        ...

    @property
    def image(self) -> str:
        """The image whose Python those programs need; empty when there are none."""
        ...

    @property
    def card(self) -> str:
        """A paragraph for `podium suites NAME`: what it asks, source, licence, human baseline."""
        ...

    def load(self, split: Split = "eval") -> Sequence[Question]:
        """Return the questions of a split in a fixed order; UserError names a missing file."""
        ...

    def read_problems(self, path: Path) -> Sequence[Question]:
        """Return the questions of the benchmark's own raw rows (JSONL, plain or .gz, or CSV).

        UserError for rows that are none of its, and always where questions are generated.
        """
        ...

    def grade(self, question: Question, reply: str, box: BoxT | None = None) -> Grade:
        """Grade one reply to an unsealed question. Pure, or raises what the box raises."""
        ...


@runtime_checkable
class NeedsPackages(Protocol):
    """A suite that some boxes cannot serve: a right program would fail there for its imports."""

    def refusal(self, box: str, packages: Sequence[str]) -> str:
        """Return why a box with these packages (`name==version`) will not do, and the way out.

        Empty when it will. Asked before the first model call.
        """
        ...
