"""A `Suite` of questions; features that only some suites have are protocols of their own.

Grading is a plain function of (question, reply): the score of an evaluation is the reward of
training. If `publishable` is False, logs are private to their owner, and no output quotes texts.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast, runtime_checkable

from inspect_ai._util.error import PrerequisiteError  # Inspect prints it without a traceback
from inspect_ai.solver import TaskState
from rich.markup import escape

from podium.harness.errors import UserError
from podium.harness.pool_config import PoolSpec
from podium.harness.records import PODIUM, Grade, Question

if TYPE_CHECKING:
    from podium.harness.extract import Reading

Split = Literal["train", "validation", "eval"]  # to train, to set thresholds, to evaluate
Prompt = Literal["official", "paper"]  # of the benchmark's authors, or of the Conductor paper
OFFICIAL: Prompt = "official"
BoxT = TypeVar("BoxT", contravariant=True)
NONE_PUBLISHED = "none published"


@dataclass(frozen=True, slots=True)
class Card:
    """A suite's content and origin, for people: `podium suites NAME` prints it."""

    title: str
    paper: str
    """Citation with a link or an arXiv id; for generated questions, the generator's location."""
    sizes: Mapping[Split, int]
    """Number of questions that `load` returns per split; empty if only loading can tell."""
    licence: str
    """The questions' licence, as their origin states it."""
    human: str
    """Results of humans, with the source; else `NONE_PUBLISHED`."""
    about: str
    """A paragraph on the suite: the questions, the grading, and the limits of a score."""
    changes: tuple[str, ...]
    """One line per version of the suite, newest last: `1-A (2026-11-19): first version`."""
    saturated: str = ""
    """Models that answer nearly all questions, and the suite's remaining use; empty if none do."""
    public: str = ""
    """Date when the questions became public, to the day if known, with the source."""
    teacher: str = ""
    """Another suite whose train split may train systems for this one; empty if there is none."""


class Suite(Protocol[BoxT]):
    """A suite: questions, and a grader that is software with a version."""

    @property
    def name(self) -> str:
        """The suite's name on the command line and in tables, e.g. `aime25`."""
        ...

    @property
    def version(self) -> str:
        """Version, e.g. `1-A`: the number changes with scores, the letter with the interface."""
        ...

    @property
    def data_revision(self) -> str:
        """Exact revision of the data: a hub commit, a sha256, or a generator's version and seed."""
        ...

    @property
    def dates(self) -> str:
        """When the questions became public, e.g. `2025-02`; `generated` for practice suites."""
        ...

    @property
    def splits(self) -> tuple[Split, ...]:
        """The suite's splits of questions; a suite with only `eval` cannot train."""
        ...

    @property
    def publishable(self) -> bool:
        """False if the suite's texts must not appear in pages, reports and exports."""
        ...

    @property
    def needs_box(self) -> bool:
        """True if grading runs model-written programs, which need a sandbox."""
        ...

    @property
    def image(self) -> str:
        """Container image with the Python that graded programs need; empty if grading runs none."""
        ...

    @property
    def card(self) -> Card:
        """The suite's description, as `podium suites NAME` prints it."""
        ...

    def load(self, split: Split = "eval") -> Sequence[Question]:
        """Return the questions of a split in a fixed order; UserError names a missing file."""
        ...

    def read_problems(self, path: Path) -> Sequence[Question]:
        """Return the questions of the benchmark's own raw rows (JSONL, plain or .gz, or CSV)."""
        ...

    def grade(self, question: Question, reply: str, box: BoxT | None = None) -> Grade:
        """Grade a reply to a question with its target; deterministic, except for sandbox errors."""
        ...


def moved_versions(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """List, as text, the suites whose grader has another version `now`; empty if none has.

    >>> moved_versions({"aime25": "2-A", "old": "1-A"}, {"aime25": "3-A"})
    'aime25 2-A (now 3-A), old 1-A (now gone)'
    """
    gone = ((name, old, now.get(name, "gone")) for name, old in then.items())
    return ", ".join(f"{name} {old} (now {new})" for name, old, new in gone if old != new)


@runtime_checkable
class NeedsPackages(Protocol):
    """A suite whose programs import packages; without these packages, correct programs fail."""

    def refusal(self, box: str, packages: Sequence[str]) -> str:
        """Return why a sandbox's packages (`name==version`) do not suffice, and the fix; or ""."""
        ...


@runtime_checkable
class LeavesOut(Protocol):
    """A suite that leaves out some of its benchmark's questions."""

    @property
    def left_out(self) -> Mapping[str, str]:
        """Id of each omitted question -> the reason, e.g. `it downloads a file`."""
        ...


@runtime_checkable
class Varied(Protocol):
    """A suite that varies its questions by epoch, e.g. the order of choices."""

    @property
    def epochs(self) -> int:
        """Default number of epochs (passes over the questions)."""
        ...

    def at_epoch(self, question: Question, epoch: int) -> Question:
        """Return an epoch's variant of a question, with target; `question` is epoch 1's."""
        ...


@runtime_checkable
class Prompted(Protocol):
    """A suite that can ask its questions with more than one prompt."""

    @property
    def prompt(self) -> Prompt:
        """Name of the prompt that `load` puts around questions: `official` or `paper`."""
        ...

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """Names of the suite's available prompts."""
        ...

    def prompted(self, prompt: Prompt) -> Suite[Any]:
        """Return the same suite with the named prompt instead of its own."""
        ...


@runtime_checkable
class ModelGraded(Protocol):
    """A suite with replies that only a model, in the role `grader`, can judge."""

    def needs_judge(self, question: Question) -> bool:
        """Return whether no rule can grade this question; `grade` then raises an error."""
        ...

    async def judged(self, state: TaskState, question: Question) -> Grade:
        """Grade an answer by calling the model in the role `grader`, inside a running eval."""
        ...


@runtime_checkable
class Explained(Protocol):
    """A suite whose replies are read by the rules of harness/rules."""

    def read(self, question: Question, reply: str) -> "Reading[Any]":
        """Return the answer that a reply gives, and the result of each stage of reading."""
        ...


@runtime_checkable
class PubliclyTested(Protocol):
    """A suite of programs whose questions show some of their tests to the system."""

    def try_public(self, question: Question, reply: str, box: Any) -> Grade:
        """Grade a reply by the share of the public tests that it passes; 0 without public tests."""
        ...


@runtime_checkable
class Rewarding(Protocol):
    """A suite whose grades include a second verdict, which training rewards do not need."""

    def for_reward(self) -> Suite[Any]:
        """Return a suite with the same grades, but without the second verdict."""
        ...


def usual_epochs(suite: Suite[Any]) -> int:
    """Return a suite's default number of epochs."""
    return suite.epochs if isinstance(suite, Varied) else 1


def at_epoch(suite: Suite[Any], question: Question, epoch: int) -> Question:
    """Return a question, with its target, in the variant of one epoch."""
    return suite.at_epoch(question, epoch) if isinstance(suite, Varied) else question


def prompt_of(suite: Suite[Any]) -> Prompt:
    """Return the name of a suite's prompt; `official` if the suite has only one prompt."""
    return suite.prompt if isinstance(suite, Prompted) else OFFICIAL


def with_prompt(suite: Suite[Any], prompt: Prompt) -> Suite[Any]:
    """Return the suite with the prompt of this name; unchanged if the suite lacks the prompt."""
    if isinstance(suite, Prompted) and prompt in suite.prompts:
        return suite.prompted(prompt)
    return suite


def keep_files_private() -> None:
    """Make all files that this process writes from now on private (mode 0600)."""
    os.umask(0o077)


def publishable(metadata: Mapping[str, Any] | None) -> bool:
    """Return whether a log's questions may be shown, by the metadata in its header."""
    return bool(_podium_facts(metadata).get("publishable", True))


def redacted_message(reason: str, showable: bool) -> str:
    """Return why something failed; only the kind of error unless `showable`.

    A provider's message can quote its request; podium's own messages on limits and refusals do not.

    >>> redacted_message("WorkerError('sage gave no reply: ...')", False)
    'WorkerError (its text is withheld because it may quote a question; the log has it)'
    """
    if showable or not reason or reason.startswith(OWN_ERRORS):
        return reason
    withheld = "its text is withheld because it may quote a question; the log has it"
    return f"{failure_kind(reason)} ({withheld})"


FIRST_SCORER = "the task's first scorer returns "
"""How podium's message on a score that is no grade begins."""
OWN_ERRORS = ("SpendLimit(", "QuestionLimit(", "UserError(", f"TypeError: {FIRST_SCORER}a ")
"""How errors whose messages podium writes, without a text of the question, begin in a log."""


def failure_kind(reason: str) -> str:
    """Return the exception's name at the start of a reason, or `failed` if it has none."""
    match = re.match(r"\w*(?:Error|Exception|Miss|Limit)\b", reason)
    return match.group() if match else "failed"


def refuse_redacted(metadata: Mapping[str, Any] | None, name: str) -> None:
    """Raise UserError for a log whose texts were removed: there is nothing to grade or replay."""
    if _podium_facts(metadata).get("redacted"):
        raise UserError(f"{name} is redacted, so its replies are gone: use the original log.")


def _podium_facts(metadata: Mapping[str, Any] | None) -> Mapping[str, Any]:
    facts: object = (metadata or {}).get(PODIUM)
    return cast(Mapping[str, Any], facts) if isinstance(facts, Mapping) else {}


class TaskRefusal(UserError, PrerequisiteError):
    """A UserError that Inspect's command line prints without a traceback."""

    def __init__(self, sentence: str) -> None:
        """Store the error message, escaped, since Inspect reads `message` as rich's markup."""
        super().__init__(sentence)
        self.args = (sentence,)
        self.message = escape(sentence)


def refuse_unjudged(
    suite: Suite[Any], questions: Sequence[Question], spec: PoolSpec | None
) -> None:
    """Raise UserError if only a model can grade some questions and the pool has no grader."""
    judged = judged_among(suite, questions)
    if judged and (spec is None or spec.grader is None):
        pool = repr(spec.name) if spec else "file"
        raise UserError(
            f"{judged} of the {len(questions)} questions of suite {suite.name!r} need a model as "
            f"judge: add a [grader] table to pool {pool}, or under `inspect eval` give "
            "--model-role grader=PROVIDER/MODEL."
        )


def refuse_judged_plans(suite: Suite[Any], questions: Sequence[Question]) -> None:
    """Raise UserError if only a model can grade a question: the oracle would need it too often."""
    if judged := judged_among(suite, questions):
        raise UserError(
            f"The oracle grades every plan that it tries, and {judged} of the {len(questions)} "
            f"questions of suite {suite.name!r} need a model as judge: name other systems with "
            "--system."
        )


def judged_among(suite: Suite[Any], questions: Sequence[Question]) -> int:
    """Return how many of a suite's questions only a model can judge."""
    return sum(map(suite.needs_judge, questions)) if isinstance(suite, ModelGraded) else 0
