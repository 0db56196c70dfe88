"""What a system would ask, counted without asking, and what counted calls will cost.

A pool whose replies are empty places shows every request of a hand-written plan; of a plan that a
model writes only bounds are known (`worst_case`). Expected is what past calls of the very models
that the pool has now took. At most is what a limit holds back (`upper_bound`): every byte of a
prompt is a token, every reply as long as `max_tokens` lets it be, at the dearest rates, HTTP
retries not in it. Unknown is None: a bound is no expectation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import ceil
from pathlib import Path
from typing import Any, cast

import anyio
from inspect_ai.model import ChatMessage, Model

from harness.errors import PodiumError
from harness.ledger.call import Attempted, Call, upper_bound
from harness.ledger.join import rows_of
from harness.ledger.runs import has_system_runs, system_runs_below
from harness.pool import Pool
from harness.pool_config import PoolSpec
from harness.prices import Book
from harness.prices.cost import cost
from harness.records import CONDUCTOR, Grade, Question, Reply, Usage
from harness.request import service_tier
from harness.run.experiment import SELECTION, task_name
from harness.system import System
from harness.workflow import Sampling

OPEN, CLOSE = "\ue000", "\ue001"
"""Around the number of a reply that is not there yet: private characters, in no question."""


@dataclass(frozen=True, slots=True)
class CountedCall:
    """A request that would be made."""

    worker: str
    prompt_bytes: int  # UTF-8 bytes of its texts, without replies that it reads
    reads: tuple[int, ...] = ()
    """The calls whose replies are in it, by their number from 0; one twice if it is there twice."""
    times_max_tokens: int = 1
    """How many of its worker's token limits the reply may have (`Sampling`)."""


class Unplannable(PodiumError):
    """What a system does depends on what a model says; holds the request to that model."""

    def __init__(self, first: CountedCall) -> None:
        """Keep the first request to the conductor."""
        super().__init__("a model writes this system's plans")
        self.first = first


@dataclass(slots=True)
class CountingPool(Pool):
    """A pool that calls nobody and keeps every request."""

    counted: list[CountedCall] = field(default_factory=list[CountedCall])

    async def ask(
        self,
        worker: str,
        messages: Sequence[ChatMessage],
        step: str,
        sampling: Sampling | None = None,
    ) -> Reply:
        """Count one request; its reply is a place for what is not known.

        Raises `Unplannable` when a conductor is asked, UserError for a worker the pool lacks.
        """
        if worker != CONDUCTOR:
            self._model(worker)
        call = _counted(worker, "\n".join(message.text for message in messages))
        if worker == CONDUCTOR:
            raise Unplannable(call)
        times = sampling.times_max_tokens if sampling else 1
        self.counted.append(replace(call, times_max_tokens=times))
        return Reply(worker, f"{OPEN}{len(self.counted) - 1}{CLOSE}", None)


async def _failing_trial(question: Question, reply: str) -> Grade:
    """Return that no public test passes: who asks until they do, asks the most it may."""
    return Grade(0.0, None)


def _counted(worker: str, text: str) -> CountedCall:
    reads: list[int] = []
    own = 0
    for number, piece in enumerate(text.split(OPEN)):
        place, closed, rest = piece.partition(CLOSE) if number else ("", "", piece)
        if closed:
            reads.append(int(place))
        own += len(rest.encode(errors="surrogatepass"))
    return CountedCall(worker, own, tuple(reads))


def counted_all(
    system: System,
    pairs: Sequence[tuple[Question, int]],
    workers: Sequence[str],
    spec: PoolSpec | None = None,
) -> list[tuple[CountedCall, ...]]:
    """Return a system's calls per (sealed question, epoch); `Unplannable` for a model's plan."""
    models = dict.fromkeys(workers, cast(Model, None))
    if spec and spec.conductor:
        models[CONDUCTOR] = cast(Model, None)

    async def each() -> list[tuple[CountedCall, ...]]:
        made: list[tuple[CountedCall, ...]] = []
        for question, epoch in pairs:
            pool = CountingPool(
                models=cast(Any, models), spec=spec, epoch=epoch, public_tests=_failing_trial
            )
            await system(question, pool)
            made.append(tuple(pool.counted))
        return made

    return anyio.run(each)


def worst_case(
    worker: str, first: CountedCall, question: Question, *, planning: int = 2, steps: int = 5
) -> tuple[CountedCall, ...]:
    """Return the most that a written plan can ask of one worker, its conductor's calls included.

    Steps read all before them; a subtask is part of what the conductor wrote. The retry has the
    first request, its reply, and a reason about as long as that request. Of `planning` calls those
    after two belong to later rounds, which see the first one's plan and last reply.
    """
    calls = [first]
    if planning > 1:
        calls.append(CountedCall(CONDUCTOR, 2 * first.prompt_bytes, (0,)))
    written = len(calls) - 1
    size = len(question.text.encode())
    for index in range(steps):
        before = tuple(range(written + 1, written + 1 + index))
        calls.append(CountedCall(worker, size, (written, *before)))
    seen = (*range(written + 1), len(calls) - 1)
    for later in range(len(calls), len(calls) + planning - 2):
        calls.append(CountedCall(CONDUCTOR, 3 * first.prompt_bytes, seen))
        seen = (*seen, later)
    return tuple(calls)


SuiteAndSystem = tuple[str, str]
Answered = tuple[str, int, str]  # question, epoch, and Inspect's id of the sample


@dataclass(slots=True)
class PastCalls:
    """Calls with their tokens and dollars."""

    calls: int = 0
    input: int = 0
    output: int = 0
    usd: Decimal | None = Decimal(0)  # None when one of them has no price
    sized: int = 0  # input tokens of the calls whose prompts' bytes are known, and those bytes
    bytes: int = 0

    def add(self, row: Call, usd: Decimal | None) -> None:
        """Add one call."""
        prompt = row.input_total or 0
        self.calls += 1
        self.input += prompt
        self.output += row.output or 0
        self.usd = None if self.usd is None or usd is None else self.usd + usd
        if row.prompt_bytes:
            self.sized += prompt
            self.bytes += row.prompt_bytes


@dataclass(slots=True)
class PastRuns:
    """What was found."""

    answers: dict[SuiteAndSystem, dict[Answered, PastCalls]] = field(default_factory=dict[Any, Any])
    """Per suite and system, what each graded answer took."""
    workers: dict[tuple[str, str], PastCalls] = field(default_factory=dict[Any, Any])
    """Per suite and worker; the suite `` is all of them."""
    judges: dict[str, PastCalls] = field(default_factory=dict[Any, Any])
    """Per suite, what judging took."""
    strangers: set[SuiteAndSystem] = field(default_factory=set[SuiteAndSystem])
    """Suites and systems that ran on other models: their totals say nothing."""

    def of_system(self, suite: str, system: str) -> list[PastCalls]:
        """Return what each answer of a system took on a suite; empty when it had none so."""
        strange = (suite, system) in self.strangers
        return [] if strange else list(self.answers.get((suite, system), {}).values())

    def of_worker(self, suite: str, worker: str) -> PastCalls | None:
        """Return a worker's calls on a suite, else on all; None when it was never called."""
        return self.workers.get((suite, worker)) or self.workers.get(("", worker))


def read_past(dirs: Sequence[Path], spec: PoolSpec, book: Book) -> PastRuns:
    """Return what ledgers say of a pool's workers, at a book's prices; UserError for damage."""
    past = PastRuns()
    models = {slot.name: slot.model for slot in spec.slots}
    refs = {slot.name: slot.price_ref for slot in spec.slots}
    found = (files for one in dirs if has_system_runs(one) for files in system_runs_below(one))
    for row in (row for files in found for row in rows_of(files)):
        if row.billable != "yes" or row.input_total is None or row.output is None:
            continue
        if models.get(row.role) != row.model:
            past.strangers.add((row.suite, row.system))
            continue
        usage, price = row.usage, book.price(refs[row.role])
        usd = cost(usage, price) if usage and price else None
        if row.scope == "scoring":
            past.judges.setdefault(row.suite, PastCalls()).add(row, usd)
        elif row.scope == "inference":
            for suite in (row.suite, ""):
                past.workers.setdefault((suite, row.role), PastCalls()).add(row, usd)
            # What a system only tried, to learn by, are no answers of its.
            alone = task_name(row.suite, row.system, SELECTION)
            if row.counted and (row.task == alone or not row.task.endswith(f"({SELECTION})")):
                answers = past.answers.setdefault((row.suite, row.system), {})
                pair = (row.question, row.epoch, row.sample)
                answers.setdefault(pair, PastCalls()).add(row, usd)
    return past


@dataclass(frozen=True, slots=True)
class CallTotals:
    """What some calls take; None is unknown."""

    calls: Decimal = Decimal(0)
    input: Decimal | None = Decimal(0)
    output: Decimal | None = Decimal(0)
    usd: Decimal | None = Decimal(0)

    @property
    def parts(self) -> tuple[Any, ...]:
        """All four, in this order."""
        return self.calls, self.input, self.output, self.usd

    def __add__(self, other: "CallTotals") -> "CallTotals":
        pairs = zip(self.parts, other.parts, strict=True)
        sums: list[Any] = [None if None in pair else pair[0] + pair[1] for pair in pairs]
        return CallTotals(*sums)

    def times(self, factor: Decimal) -> "CallTotals":
        """Return the take of so many such things."""
        scaled: list[Any] = [None if one is None else one * factor for one in self.parts]
        return CallTotals(*scaled)


NO_CALLS = CallTotals()
UNKNOWN_CALL = CallTotals(Decimal(1), None, None, None)


@dataclass(slots=True)
class Estimator:
    """Prices calls of one pool; notes why something stayed unknown."""

    spec: PoolSpec
    book: Book
    past: PastRuns
    suite: str
    unknown: dict[str, None] = field(default_factory=dict[str, None])  # reasons, in order
    bounded: set[str] = field(default_factory=set[str])
    """Workers of whom no past call is known, so that nothing is expected of them."""

    def at_most(self, calls: Sequence[CountedCall]) -> CallTotals:
        """Return the most that one question's calls can take."""
        return self._sum(calls, [self._limit(call) for call in calls], None)

    def expected(self, calls: Sequence[CountedCall]) -> CallTotals:
        """Return what one question's calls take when workers go on as they did."""
        outputs: list[int | None] = []
        for call in calls:
            past = self.past.of_worker(self.suite, call.worker)
            if past is None:
                self.bounded.add(call.worker)
            outputs.append(None if past is None else ceil(Decimal(past.output) / past.calls))
        return self._sum(calls, outputs, self.past)

    def _sum(
        self, calls: Sequence[CountedCall], outputs: Sequence[int | None], past: PastRuns | None
    ) -> CallTotals:
        total = NO_CALLS
        for call, output in zip(calls, outputs, strict=True):
            own = call.prompt_bytes
            known = past.of_worker(self.suite, call.worker) if past else None
            if past and known is None:
                total += UNKNOWN_CALL
                continue
            if known is not None and known.bytes:
                own = ceil(Decimal(own) * known.sized / known.bytes)
            read = [outputs[one] for one in call.reads]
            said = [one for one in read if one is not None]
            prompt = own + sum(said) if len(said) == len(read) else None
            total += self._one(call.worker, prompt, output, at_most=past is None)
        return total

    def _one(
        self, worker: str, prompt: int | None, output: int | None, *, at_most: bool
    ) -> CallTotals:
        slot = self.spec.worker(worker)
        price = self.book.price(slot.price_ref)
        if price is None:
            where = f"{slot.price_ref} is not in {self.book.name}"
            self.unknown[f"{worker} has no price ({where})"] = None
        usd = None
        if at_most:
            service = service_tier(slot.config, slot.args)
            usd = upper_bound(Attempted("unknown", "none", None, service, prompt, output), price)
        elif price is not None and prompt is not None and output is not None:
            usd = cost(Usage(input=prompt, output=output), price)
        read, written = (None if one is None else Decimal(one) for one in (prompt, output))
        return CallTotals(Decimal(1), read, written, usd)

    def _limit(self, call: CountedCall) -> int | None:
        limit = self.spec.worker(call.worker).config.max_tokens
        if limit is None:
            self.unknown[f"{call.worker} sets no max_tokens"] = None
            return None
        return limit * call.times_max_tokens


def mean_of(found: Sequence[PastCalls]) -> CallTotals:
    """Return what a past answer took on average."""
    counts = ((Decimal(one.calls), Decimal(one.input), Decimal(one.output)) for one in found)
    taken = (CallTotals(*three, one.usd) for three, one in zip(counts, found, strict=True))
    parts = sum(taken, NO_CALLS).parts
    means: list[Any] = [None if one is None else one / Decimal(len(found)) for one in parts]
    return CallTotals(*means)


def by_cost(take: CallTotals) -> tuple[bool, Decimal]:
    """Return a sort key: what is unknown may be the dearest."""
    return take.usd is None, take.usd or Decimal(0)
