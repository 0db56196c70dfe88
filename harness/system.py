"""A `System` answers a question without its target, with a pool; a `SystemCard` describes it."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from podium.harness.envelope import EqualBudget
from podium.harness.errors import UserError
from podium.harness.execute import Budget, execute
from podium.harness.learning import Artifact, Explorer, Matrix
from podium.harness.pool import Pool
from podium.harness.pool_config import PoolSpec, WorkerSpec
from podium.harness.records import Answer, Question
from podium.harness.workflow import MALFORMED, Malformed, Workflow

VOTED = "the vote of the replies that came"
"""Value of `SystemCard.spent` for systems that vote among candidate replies."""
Plan = Callable[[Question, Pool], Workflow]  # uses the question and the pool's worker names


class System(Protocol):
    """Anything that can answer a suite's questions."""

    async def __call__(self, question: Question, pool: Pool) -> Answer:
        """Answer a question without its target; raise `WorkerError` if a worker gave no reply."""
        ...


Expected = Callable[[int, Mapping[str, Any]], tuple[int, int]]
"""(workers in the pool, solver arguments) -> the least and the most worker calls of a question;
a conductor's own calls are no worker calls."""
Need = Literal["conductor", "public tests", "train", "match", "sandbox"]
"""What a system needs to run, in this order: a `[conductor]` in the pool, a suite that shows tests,
a train split to learn from, another system in the same run (the conductor) whose cost or tokens it
matches, or an Inspect sandbox for its programs."""
Trait = Literal["best worker", "adaptive", "recorded", "sees targets", "whole run"]
"""Traits of a system, in this order: its argument `worker` is the worker that is best on the train
split, if there is a train split; replies decide which worker it calls next, so a dry run prices
each call as the most expensive; it sends only canonical single-worker requests, which recorded
replies can serve; it uses the targets (a labelled control, never comparable as a method); it is
trained once per run, on the train questions of all suites."""
Acts = Literal["passes", "last step acts", "votes", "no"]
"""How a system handles a conversation with tools, in this order: it passes the conversation to the
worker that answers; it passes it to the last step's worker, with the earlier replies; it votes over
its workers' tool calls, or picks one; or it makes no tool calls and replies in words."""
Group = Literal["contestants", "routers", "controls", "frameworks"]  # headings of `podium systems`


@dataclass(frozen=True, slots=True)
class Calls:
    """The number of calls that a system makes for one question."""

    words: str
    """Number of worker calls, as a formula or in words: `n + 1`, `1-5, 3 on average`."""
    expected: Expected | tuple[int, int] | None = None
    """Number of worker calls, which the audit checks: (least, most), or a function of workers and
    arguments; None if unknown."""
    conductor: int | Callable[[Mapping[str, Any]], int] = 2
    """Maximum conductor calls (default: a plan and a retry), or a function of the arguments."""

    def span(self, workers: int, args: Mapping[str, Any]) -> tuple[int, int] | None:
        """Return the least and the most worker calls of a question; None if unknown."""
        return self.expected(workers, args) if callable(self.expected) else self.expected

    def most_planning(self, args: Mapping[str, Any]) -> int:
        """Return the maximum number of conductor calls for a question."""
        return self.conductor(args) if callable(self.conductor) else self.conductor


@dataclass(frozen=True, slots=True)
class Extra:
    """A pip extra, and the modules that show whether it is installed."""

    name: str
    modules: tuple[str, ...]


class SystemMethods:
    """Optional behaviour of a system: a subclass overrides the methods that apply to the system.

    `x` is the part of a system's name after `@`, empty if there is none.
    """

    extra: Extra | None = None
    """The pip extra that must be installed; None if the system needs no extra."""

    def __init__(self, extra: Extra | None = None) -> None:
        """Store the pip extra; None keeps the extra that the class defines."""
        self.extra = extra or self.extra

    def arguments(self, x: str) -> Mapping[str, Any]:
        """Return the solver's arguments for `x`, a checkpoint or preset in a name `NAME@X`."""
        return {}

    def conductor(self, x: str) -> WorkerSpec | None:
        """Return the system's own conductor, if any; UserError if `x` names no such model."""
        return None

    def pool_refusal(self, x: str, spec: PoolSpec) -> str | None:
        """Return why the system cannot use a pool, as a clause after its name; None if it can."""
        return None

    def live_refusal(self, x: str, spec: PoolSpec) -> str | None:
        """Return why `NAME@x` must not run on live workers, as a clause after it; else None."""
        return None

    def suite_refusal(self, x: str, suite: str, digests: Sequence[str]) -> str | None:
        """Return why the system must not answer a suite's questions (`digests`); None if it may."""
        return None

    def remarks(self, x: str, spec: PoolSpec) -> Sequence[str]:
        """Return remarks on the system with this pool, which doctor and live runs print."""
        return ()

    def graders(self, x: str) -> Mapping[str, str] | None:
        """Return {suite: version of the grader used in training}; None if it was not recorded."""
        return {}

    def footnote(self, label: str) -> str:
        """Return the system's footnote in tables of pools labelled `recorded` or `rehearsal`."""
        return ""

    def learn(self, matrix: Matrix, seed: int) -> Artifact:
        """Return what the system learns from single workers' results on the train split."""
        raise NotImplementedError

    def explorer(self) -> Explorer:
        """Return the explorer of a system that learns from trial runs, and not by `learn`."""
        raise NotImplementedError

    def replaces(self, method: str) -> bool:
        """Return whether the system overrides a method of `SystemMethods`."""
        return getattr(type(self), method) is not getattr(SystemMethods, method)


class Exploring(SystemMethods):
    """Methods of a system that learns from trial runs and overrides nothing else."""

    def __init__(self, make: Callable[[], Explorer]) -> None:
        """Store `make`, the function that makes the system's explorer (chooser of trial runs)."""
        super().__init__()
        self._make = make

    def explorer(self) -> Explorer:
        """Return the system's explorer, which chooses the trial runs."""
        return self._make()


NO_METHODS = SystemMethods()


@dataclass(frozen=True, slots=True)
class SystemCard:
    """Facts about a system: `podium systems NAME` prints them, tables footnote them."""

    name: str
    """The system's name in tables, such as `moa-lite`."""
    solver: str
    """Name of the system's Inspect solver: `podium/moa_lite`; for your own system, the name in
    `registered`."""
    summary: str
    source: str
    """Where the method comes from: paper, repository, or `podium` for podium's own systems."""
    calls: Calls
    group: Group = "contestants"
    prompts: tuple[str, ...] = ()
    """Every text that the system adds to workers' prompts; empty if it adds none."""
    k: str = ""
    """The argument that `NAME@3` sets, e.g. `k` of `self-consistency@3`; empty if none."""
    needs: frozenset[Need] = frozenset()
    traits: frozenset[Trait] = frozenset()
    deviations: tuple[str, ...] = ()
    """Differences from the authors' system, one clause each."""
    methods: SystemMethods = NO_METHODS
    acts: Acts = "no"
    spent: str = "the latest reply"
    """The system's answer if its equal budget (harness/envelope.py) is spent before it is done."""

    @property
    def fits_budgets(self) -> bool:
        """Whether the system can answer within an equal budget (`--equal`).

        Agent frameworks, systems that match another's cost, and those that see targets cannot.
        """
        targets = "sees targets" in self.traits
        return not (self.group == "frameworks" or "match" in self.needs or targets)

    @property
    def prompt_sha256(self) -> str:
        """Digest of all the system's prompts, in order; empty if it has no prompts."""
        joined = "\n\x00\n".join(self.prompts)
        return hashlib.sha256(joined.encode()).hexdigest() if self.prompts else ""

    @property
    def takes_name(self) -> bool:
        """Whether NAME@X takes a name (a checkpoint, a preset) and not a number."""
        return self.methods.replaces("arguments")

    @property
    def explores(self) -> bool:
        """Whether the system learns from trial runs on train questions."""
        return self.methods.replaces("explorer")

    @property
    def learns(self) -> bool:
        """Whether the system must be trained before it can answer."""
        return self.explores or self.methods.replaces("learn")


def exactly(count: Callable[[int, Mapping[str, Any]], int]) -> Expected:
    """Return a function (workers, args) -> (least, most) calls, both equal to `count`.

    >>> exactly(lambda n, args: n + 1)(7, {})
    (8, 8)
    """
    return lambda n, args: (count(n, args), count(n, args))


def planned(plan: Plan, budget: Budget | None = None, keeps: int = 0) -> System:
    """Return a system that runs the workflow that `plan` returns; arguments as in `execute`."""

    async def answer(question: Question, pool: Pool) -> Answer:
        return await execute(plan(question, pool), question, pool, budget, keeps=keeps)

    return answer


def malformed(reason: Malformed) -> Answer:
    """Return the empty answer of a system whose plan could not be run; it is graded as wrong."""
    return Answer(text="", plan=f"{MALFORMED}{reason.reason}")


def card_header(
    manifest: SystemCard, workers: int, args: Mapping[str, Any], equal: EqualBudget | None = None
) -> dict[str, Any]:
    """Return a system's entry in a log's header, given the number of workers and arguments."""
    span = manifest.calls.span(workers, args)
    if equal and span:
        maximum = min(span[1], int(equal.limit)) if equal.unit == "calls" else span[1]
        span = 0, maximum
    return {
        "source": manifest.source,
        "prompt_sha256": manifest.prompt_sha256,
        "calls_expected": span and [*span],
        "deviations": list(manifest.deviations),
    }


VARIABLE = "PODIUM_SANDBOX"


LOCAL, DOCKER = "local", "docker"


def sandbox_of(manifest: SystemCard) -> str | tuple[str, str] | None:
    """Return the Inspect sandbox of a system; None if it needs none, UserError if it is missing."""
    if "sandbox" not in manifest.needs:
        return None
    if lacks_sandbox(manifest):
        raise UserError(missing_sandbox(manifest.name))
    kind, _, file = os.environ[VARIABLE].partition(":")
    return (kind, file) if file else kind


def lacks_sandbox(manifest: SystemCard) -> bool:
    """Return whether a system needs a sandbox, and PODIUM_SANDBOX names none that exists."""
    kind, _, file = os.environ.get(VARIABLE, "").partition(":")
    exists = kind == LOCAL if not file else kind == DOCKER and Path(file).is_file()
    return "sandbox" in manifest.needs and not exists


def missing_sandbox(name: str) -> str:
    """Return the error message for a system that needs a sandbox and has none."""
    return (
        f"{name} runs in a sandbox of Inspect's: set {VARIABLE}=docker:COMPOSE-FILE, without a "
        f"network, or {VARIABLE}=local to trust it (inspect eval: --sandbox)."
    )
