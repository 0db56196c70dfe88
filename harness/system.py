"""A `System` makes an answer of a sealed question and a pool; its `SystemCard` says what it is.

It never sees a target, a suite or a grader.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from inspect_ai.solver import Solver

from podium.harness.execute import Budget, execute
from podium.harness.learning import Artifact, Explorer, Matrix
from podium.harness.pool import Pool
from podium.harness.pool_config import PoolSpec, WorkerSpec
from podium.harness.records import Answer, Question
from podium.harness.workflow import MALFORMED, Malformed, Workflow

Plan = Callable[[Question, Pool], Workflow]  # of the sealed question and the pool's worker names


class System(Protocol):
    """Anything that can answer a suite's questions."""

    async def __call__(self, question: Question, pool: Pool) -> Answer:
        """Answer one sealed question; raise `WorkerError` when a worker gave no reply."""
        ...


Expected = Callable[[int, Mapping[str, Any]], tuple[int, int]]
"""(workers in the pool, solver arguments) -> the least and the most worker calls of a question;
a conductor's own calls are no worker calls."""
Need = Literal["conductor", "public tests", "train", "match", "sandbox"]
"""What a system cannot run without: a `[conductor]` in the pool, a suite that shows tests, a train
split to learn from, a conductor's row in the same run to be matched with, or a sandbox of Inspect's
for programs of its own."""
Group = Literal["contestants", "routers", "controls", "frameworks"]  # headings of `podium systems`


@dataclass(frozen=True, slots=True)
class SystemCard:
    """What a system says about itself: `podium systems NAME` prints it, the table footnotes it."""

    name: str
    """As in tables: `moa-lite`."""
    solver: str
    """Registry name for Inspect users: `podium/moa_lite`; of your own any name, with `make`."""
    summary: str
    source: str
    """Paper, repository, or `podium` for our own."""
    calls: str
    """Expected worker calls per question in words, e.g. `n + 1`."""
    group: Group = "contestants"
    expected: Expected | None = None
    """None where it cannot be said beforehand."""
    prompts: tuple[str, ...] = ()
    """Every text that the system itself puts before workers; empty when it adds none."""
    k: str = ""
    """The argument that `NAME@3` sets, e.g. `k` of `self-consistency@3`; empty when none."""
    needs: frozenset[Need] = frozenset()
    workers: int = 1
    """The fewest workers of a pool that it can do with."""
    conductor_calls: int = 2
    """The most calls of a conductor for one question, where it needs one: a plan, and one retry."""
    override: Callable[[str], WorkerSpec] | None = None
    """What stands behind the @ of its name -> the conductor that it brings along, whoever the
    pool's is; UserError where there is no such model."""
    brings: Callable[[str], Mapping[str, Any]] | None = None
    """Where `NAME@X` names a checkpoint instead of a number: X -> arguments of the solver."""
    unfit: Callable[[str, str, Sequence[str]], str | None] | None = None
    """(X, suite, digests of its questions) -> why it may not run on this suite, else None."""
    misplaced: Callable[[str, PoolSpec], str | None] | None = None
    """(X, pool) -> why it can do nothing with this pool's workers, else None."""
    remarks: Callable[[str, PoolSpec], Sequence[str]] | None = None
    """(X, pool) -> what `podium doctor` says of it, a sentence each, where it is not refused."""
    rewarded: Callable[[str], Mapping[str, str] | None] | None = None
    """X -> suite -> version of the grader that trained it; None where nobody wrote it down."""
    extra: str = ""
    """The extra of pip that it needs, e.g. `routers`; empty when the core is enough."""
    modules: tuple[str, ...] = ()
    learn: Callable[[Matrix, int], Artifact] | None = None
    """(single workers on the train split, seed) -> what it has learnt from them."""
    explorer: Callable[[], Explorer] | None = None
    """How it learns by trying, where single workers' results are not enough."""
    on_best: bool = False
    """True when its `worker` is the best single worker of the train split, where there is one."""
    adaptive: bool = False
    """True when replies decide whom it asks next: a dry run then takes all for the dearest."""
    recorded: bool = False
    """True when it makes canonical single-worker requests only: recorded replies can serve it."""
    uses_targets: bool = False
    """True for labelled controls that look at targets (oracle); never comparable as a method."""
    deviations: tuple[str, ...] = ()
    """Where it is not what its authors ran, one clause each."""
    on_label: Mapping[str, str] = field(default_factory=dict[str, str])
    """A footnote for pools of one label only: `recorded` or `rehearsal`."""
    make: Callable[..., Solver] | None = None
    """What makes its solver, of a system of your own; ours are found by `solver`."""

    @property
    def prompt_sha256(self) -> str:
        """Digest of all its prompts, in order; empty when it has none of its own."""
        joined = "\n\x00\n".join(self.prompts)
        return hashlib.sha256(joined.encode()).hexdigest() if self.prompts else ""

    @property
    def learns(self) -> bool:
        """Whether it must be trained before it can answer."""
        return self.learn is not None or self.explorer is not None


def exactly(count: Callable[[int, Mapping[str, Any]], int]) -> Expected:
    """Return the expectation of always so many calls.

    >>> exactly(lambda n, args: n + 1)(7, {})
    (8, 8)
    """
    return lambda n, args: (count(n, args), count(n, args))


def planned(plan: Plan, budget: Budget | None = None) -> System:
    """Return the system that writes a workflow with `plan` and runs it within `budget`."""

    async def answer(question: Question, pool: Pool) -> Answer:
        return await execute(plan(question, pool), question, pool, budget or Budget())

    return answer


def malformed(reason: Malformed) -> Answer:
    """Return the empty answer of a system whose plan could not be run: graded, and wrong."""
    return Answer(text="", plan=f"{MALFORMED}{reason.reason}")


def card_header(manifest: SystemCard, workers: int, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a log's header says of a system, for so many workers and these arguments."""
    return {
        "source": manifest.source,
        "prompt_sha256": manifest.prompt_sha256,
        "calls_expected": list(manifest.expected(workers, args)) if manifest.expected else None,
        "deviations": list(manifest.deviations),
    }
