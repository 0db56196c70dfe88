"""A `Suite` of questions; what only some suites have is a protocol of its own below it.

Grading is a plain function of (question, reply): what scores an evaluation rewards training. Where
`publishable` is False logs are their owner's alone, and no table, message or cassette quotes them.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast, runtime_checkable

from inspect_ai._util.error import PrerequisiteError  # what Inspect prints plainly
from inspect_ai.solver import TaskState
from rich.markup import escape

from podium.harness.errors import UserError
from podium.harness.pool_config import PoolSpec
from podium.harness.records import PODIUM, Grade, Question

if TYPE_CHECKING:
    from podium.harness.extract import Reading

Split = Literal["train", "validation", "eval"]  # to teach, to set thresholds, to be evaluated
Prompt = Literal["official", "paper"]  # as the benchmark's authors put it, or the Conductor paper
OFFICIAL: Prompt = "official"
BoxT = TypeVar("BoxT", contravariant=True)
NONE_PUBLISHED = "none published"


@dataclass(frozen=True, slots=True)
class Card:
    """What a suite asks and where it is from, for people: `podium suites NAME` prints it."""

    title: str
    paper: str
    """Citation with a link or an arXiv id; for generated questions, where the generator is."""
    sizes: Mapping[Split, int]
    """Questions of each split, as `load` returns them; empty where only loading can tell."""
    licence: str
    """As the origin states it."""
    human: str
    """How well people did, with the source; else `NONE_PUBLISHED`."""
    about: str
    """A paragraph: what is asked, how a reply is graded, and what a score does not say."""
    changes: tuple[str, ...]
    """One line per version, newest last: `1-A (2026-11-19): first version`."""
    saturated: str = ""
    """Who answers nearly all of it, and what it can still show; empty where nobody does."""
    public: str = ""
    """When its questions became public, to the day if known, with the source."""
    teacher: str = ""
    """Suite whose train split may teach systems for it; empty if its own does, or none is near."""


class Suite(Protocol[BoxT]):
    """A suite: questions, and a grader that is software with a version."""

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
    def card(self) -> Card:
        """What it asks, its paper, sizes, licence and human baseline, for `podium suites NAME`."""
        ...

    def load(self, split: Split = "eval") -> Sequence[Question]:
        """Return the questions of a split in a fixed order; UserError names a missing file."""
        ...

    def read_problems(self, path: Path) -> Sequence[Question]:
        """Return the questions of the benchmark's own raw rows (JSONL, plain or .gz, or CSV)."""
        ...

    def grade(self, question: Question, reply: str, box: BoxT | None = None) -> Grade:
        """Grade one reply to an unsealed question. Pure, or raises what the box raises."""
        ...


def moved_versions(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Name the graders that have another version now; empty where none has.

    >>> moved_versions({"aime25": "2-A", "old": "1-A"}, {"aime25": "3-A"})
    'aime25 2-A (now 3-A), old 1-A (now gone)'
    """
    gone = ((name, old, now.get(name, "gone")) for name, old in then.items())
    return ", ".join(f"{name} {old} (now {new})" for name, old, new in gone if old != new)


@runtime_checkable
class NeedsPackages(Protocol):
    """A suite that some boxes cannot serve: a right program would fail there for its imports."""

    def refusal(self, box: str, packages: Sequence[str]) -> str:
        """Return why these packages (`name==version`) will not do, and the way out; else ""."""
        ...


@runtime_checkable
class LeavesOut(Protocol):
    """A suite that does not ask all questions of its benchmark."""

    @property
    def left_out(self) -> Mapping[str, str]:
        """The ids of questions that `load` leaves out, and why: `it downloads a file`."""
        ...


@runtime_checkable
class Varied(Protocol):
    """A suite that puts a question differently in each epoch: its choices in another order."""

    @property
    def epochs(self) -> int:
        """How often each question is asked unless the user says otherwise."""
        ...

    def at_epoch(self, question: Question, epoch: int) -> Question:
        """Return a question of `load` (epoch 1) as a later epoch asks it, its target moved too."""
        ...


@runtime_checkable
class Prompted(Protocol):
    """A suite whose questions can be put in more than one way."""

    @property
    def prompt(self) -> Prompt:
        """The way that `load` puts them."""
        ...

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The ways that are known."""
        ...

    def prompted(self, prompt: Prompt) -> Suite[Any]:
        """Return the same suite with its questions put in one of those ways."""
        ...


@runtime_checkable
class ModelGraded(Protocol):
    """A suite some of whose replies only a model can judge; it is asked in the role `grader`."""

    def needs_judge(self, question: Question) -> bool:
        """Return whether no rule can grade this question; `grade` raises for it."""
        ...

    async def judged(self, state: TaskState, question: Question) -> Grade:
        """Grade by asking the role `grader`, inside a running eval."""
        ...


@runtime_checkable
class Explained(Protocol):
    """A suite whose replies are read by the rules of harness/rules."""

    def read(self, question: Question, reply: str) -> "Reading[Any]":
        """Return what a reply gives, and what each stage made of it."""
        ...


@runtime_checkable
class PubliclyTested(Protocol):
    """A suite of programs whose questions show some of their tests to who is examined."""

    def try_public(self, question: Question, reply: str, box: Any) -> Grade:
        """Return the share of a sealed question's own tests that a reply passes; 0 without any."""
        ...


@runtime_checkable
class Rewarding(Protocol):
    """A suite that does more than a reward needs: a second verdict to be shown beside its own."""

    def for_reward(self) -> Suite[Any]:
        """Return a suite that gives the same values, without the rest."""
        ...


def usual_epochs(suite: Suite[Any]) -> int:
    """Return how often a suite asks each question unless the user says otherwise."""
    return suite.epochs if isinstance(suite, Varied) else 1


def at_epoch(suite: Suite[Any], question: Question, epoch: int) -> Question:
    """Return an unsealed question as one epoch asks it."""
    return suite.at_epoch(question, epoch) if isinstance(suite, Varied) else question


def prompt_of(suite: Suite[Any]) -> Prompt:
    """Return how a suite puts its questions."""
    return suite.prompt if isinstance(suite, Prompted) else OFFICIAL


def with_prompt(suite: Suite[Any], prompt: Prompt) -> Suite[Any]:
    """Return the suite with its questions put so where that way is known, else as it is."""
    if isinstance(suite, Prompted) and prompt in suite.prompts:
        return suite.prompted(prompt)
    return suite


def keep_files_private() -> None:
    """Let every file that this process writes from now on be its owner's alone (mode 0600)."""
    os.umask(0o077)


def publishable(metadata: Mapping[str, Any] | None) -> bool:
    """Return whether a log's questions may be shown, by the metadata in its header."""
    return bool(_podium_facts(metadata).get("publishable", True))


def redacted_message(reason: str, showable: bool) -> str:
    """Return why something failed; only its kind where a suite may not be `shown`.

    A provider's words can quote what it was sent.

    >>> redacted_message("WorkerError('sage gave no reply: ...')", False)
    'WorkerError (its words are withheld, they may quote a question; the log has them)'
    """
    withheld = "its words are withheld, they may quote a question; the log has them"
    return reason if showable or not reason else f"{failure_kind(reason)} ({withheld})"


def failure_kind(reason: str) -> str:
    """Return the exception's name at the start of a reason, or a word for what has none."""
    match = re.match(r"\w*(?:Error|Exception|Miss|Limit)\b", reason)
    return match.group() if match else "failed"


def refuse_redacted(metadata: Mapping[str, Any] | None, name: str) -> None:
    """Raise UserError for a log whose texts were taken out: there is nothing to grade or replay."""
    if _podium_facts(metadata).get("redacted"):
        raise UserError(f"{name} is redacted, so its replies are gone: take the original log.")


def _podium_facts(metadata: Mapping[str, Any] | None) -> Mapping[str, Any]:
    facts: object = (metadata or {}).get(PODIUM)
    return cast(Mapping[str, Any], facts) if isinstance(facts, Mapping) else {}


class TaskRefusal(UserError, PrerequisiteError):
    """A UserError that Inspect's command line prints as it prints its own."""

    def __init__(self, sentence: str) -> None:
        """Say this; Inspect reads its own copy as rich's markup."""
        super().__init__(sentence)
        self.args = (sentence,)
        self.message = escape(sentence)


def refuse_unjudged(
    suite: Suite[Any], questions: Sequence[Question], spec: PoolSpec | None
) -> None:
    """Raise UserError when only a model can grade some of the questions and the pool has none."""
    judged = judged_among(suite, questions)
    if judged and (spec is None or spec.grader is None):
        pool = repr(spec.name) if spec else "file"
        raise UserError(
            f"Only a model can judge {judged} of the {len(questions)} questions of suite "
            f"{suite.name!r}: add a [grader] table to pool {pool}, "
            "or under `inspect eval` give --model-role grader=PROVIDER/MODEL."
        )


def refuse_judged_plans(suite: Suite[Any], questions: Sequence[Question]) -> None:
    """Raise UserError for an oracle on questions that no rule grades: it grades every plan."""
    if judged := judged_among(suite, questions):
        raise UserError(
            f"The oracle grades every plan that it tries, and only a model can judge {judged} of "
            f"the {len(questions)} questions of suite {suite.name!r}: name other systems with "
            "--system."
        )


def judged_among(suite: Suite[Any], questions: Sequence[Question]) -> int:
    """Return how many questions only a model can judge."""
    return sum(map(suite.needs_judge, questions)) if isinstance(suite, ModelGraded) else 0
