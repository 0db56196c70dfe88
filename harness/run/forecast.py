"""What a system would ask, counted without asking, and what counted calls will cost.

Expected is what past calls of the very models that the pool has now took. At most is what a limit
holds back (`upper_bound`), HTTP retries not in it. Unknown is None: a bound is no expectation.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import ceil
from pathlib import Path
from typing import Any, cast

import anyio
from inspect_ai.model import ChatMessage, Model

from podium.harness.errors import PodiumError
from podium.harness.ledger.call import Attempted, Call, upper_bound
from podium.harness.ledger.join import rows_of
from podium.harness.ledger.runs import has_system_runs, system_runs_below
from podium.harness.pool import Pool
from podium.harness.pool_config import PoolSpec
from podium.harness.prices import Book
from podium.harness.prices.cost import Price, cost
from podium.harness.records import CONDUCTOR, Grade, Question, Reply, Usage
from podium.harness.request import service_tier
from podium.harness.run.experiment import SELECTION, task_name
from podium.harness.system import System
from podium.harness.workflow import Sampling

PLACE = re.compile("\ue000(\\d+)\ue001")
"""The number of a reply that is not there yet, between private characters: in no question."""


@dataclass(frozen=True, slots=True)
class CountedCall:
    """A request that would be made."""

    worker: str
    prompt_bytes: int  # UTF-8 bytes of its texts, without replies that it reads
    reads: tuple[int, ...] = ()
    """The calls whose replies are in it, by their number from 0; one twice if it is there twice."""
    times_max_tokens: int = 1
    """How many of its worker's token limits the reply may have (`Sampling`)."""


def chained_calls(worker: str, prompt_bytes: int, steps: int) -> list[CountedCall]:
    """Return so many requests to one worker, each reading the replies to all before it."""
    return [CountedCall(worker, prompt_bytes, tuple(range(step))) for step in range(steps)]


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
        text = "\n".join(message.text for message in messages)
        own = len(PLACE.sub("", text).encode(errors="surrogatepass"))
        times = sampling.times_max_tokens if sampling else 1
        call = CountedCall(worker, own, tuple(map(int, PLACE.findall(text))), times)
        if worker == CONDUCTOR:
            raise Unplannable(call)
        self._model(worker)
        self.counted.append(call)
        return Reply(worker, f"\ue000{len(self.counted) - 1}\ue001", None)


async def _failing_trial(question: Question, reply: str) -> Grade:
    """Return that no public test passes: who asks until they do, asks the most it may."""
    return Grade(0.0, None)


def counted_all(
    system: System,
    pairs: Sequence[tuple[Question, int]],
    workers: Sequence[str],
    spec: PoolSpec | None = None,
) -> list[tuple[CountedCall, ...]]:
    """Return a system's calls per (sealed question, epoch); `Unplannable` for a model's plan."""
    variants = [slot.name for slot in spec.variants] if spec else []
    models = dict.fromkeys((*workers, *variants), cast(Model, None))
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
    worker: str, first: CountedCall, question: Question, planning: int, steps: int
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


@dataclass(frozen=True, slots=True)
class CallTotals:
    """What some calls take; None is unknown."""

    calls: Decimal = Decimal(0)
    input: Decimal | None = Decimal(0)
    output: Decimal | None = Decimal(0)
    usd: Decimal | None = Decimal(0)
    sized: Decimal = Decimal(0)
    """Input tokens of past calls whose prompts' bytes are known, and those bytes."""
    bytes: Decimal = Decimal(0)

    @property
    def parts(self) -> tuple[Any, ...]:
        """All of them, in this order."""
        return self.calls, self.input, self.output, self.usd, self.sized, self.bytes

    def __add__(self, other: "CallTotals") -> "CallTotals":
        pairs = zip(self.parts, other.parts, strict=True)
        sums: list[Any] = [None if None in pair else pair[0] + pair[1] for pair in pairs]
        return CallTotals(*sums)

    def times(self, factor: Decimal | int) -> "CallTotals":
        """Return the take of so many such things."""
        scaled: list[Any] = [None if one is None else one * factor for one in self.parts]
        return CallTotals(*scaled)

    def per(self, count: Decimal | int) -> "CallTotals":
        """Return the take of one of so many such things."""
        shares: list[Any] = [None if one is None else one / count for one in self.parts]
        return CallTotals(*shares)


NO_CALLS = CallTotals()
UNKNOWN_CALL = CallTotals(Decimal(1), None, None, None)


def _sums() -> defaultdict[Any, CallTotals]:
    return defaultdict(CallTotals)


def _one_call(prompt: int | None, output: int | None, usd: Decimal | None) -> CallTotals:
    read, written = (None if one is None else Decimal(one) for one in (prompt, output))
    return CallTotals(Decimal(1), read, written, usd)


@dataclass(slots=True)
class PastRuns:
    """What was found."""

    answers: dict[tuple[str, str], defaultdict[Any, CallTotals]] = field(
        default_factory=lambda: defaultdict(_sums)
    )
    """Per suite and system, what each graded answer took."""
    workers: dict[tuple[str, str], CallTotals] = field(default_factory=_sums)
    """Per suite and worker; the suite `` is all of them."""
    judges: dict[str, CallTotals] = field(default_factory=_sums)  # per suite, what judging took
    strangers: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Suites and systems that ran on other models: their totals say nothing."""

    def of_system(self, suite: str, system: str) -> list[CallTotals]:
        """Return what each answer of a system took on a suite; empty when it had none so."""
        key = (suite, system)
        known = key in self.answers and key not in self.strangers
        return [*self.answers[key].values()] if known else []

    def of_worker(self, suite: str, worker: str) -> CallTotals | None:
        """Return a worker's calls on a suite, else on all; None when it was never called."""
        return self.workers.get((suite, worker)) or self.workers.get(("", worker))

    def add(self, row: Call, took: CallTotals) -> None:
        """Add a call to whatever it was part of."""
        if row.scope == "scoring":
            self.judges[row.suite] += took
        if row.scope != "inference":
            return
        for suite in (row.suite, ""):
            self.workers[suite, row.role] += took
        # What a system only tried, to learn by, are no answers of its.
        alone = task_name(row.suite, row.system, SELECTION)
        if row.counted and (row.task == alone or not row.task.endswith(f"({SELECTION})")):
            pair = (row.question, row.epoch, row.sample)
            self.answers[row.suite, row.system][pair] += took


def read_past(dirs: Sequence[Path], spec: PoolSpec, book: Book) -> PastRuns:
    """Return what ledgers say of a pool's workers, at a book's prices; UserError for damage."""
    past = PastRuns()
    slots = {slot.name: slot for slot in spec.slots}
    found = (files for one in dirs if has_system_runs(one) for files in system_runs_below(one))
    for row in (row for files in found for row in rows_of(files)):
        served = row.billable == "yes" or row.shared_from is not None
        if not served or row.input_total is None or row.output is None:
            continue
        slot = slots.get(row.role)
        if slot is None or slot.model != row.model:
            past.strangers.add((row.suite, row.system))
            continue
        usage, price = row.usage, book.price(slot.price_ref)
        service = service_tier(slot.config, slot.args)
        usd = cost(usage, price, service) if usage and price else None
        took = _one_call(row.input_total, row.output, usd)
        if row.prompt_bytes:
            sizes = Decimal(row.input_total), Decimal(row.prompt_bytes)
            took = replace(took, sized=sizes[0], bytes=sizes[1])
        past.add(row, took)
    return past


def mean_of(totals: Sequence[CallTotals]) -> CallTotals:
    """Return what several things took on average."""
    return sum(totals, NO_CALLS).per(len(totals))


def by_cost(take: CallTotals) -> tuple[bool, Decimal]:
    """Return a sort key: what is unknown may be the dearest."""
    return take.usd is None, take.usd or Decimal(0)


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
    reasoning: int | None = None  # tokens of an expected reply that are reasoning

    def at_most(self, calls: Sequence[CountedCall]) -> CallTotals:
        """Return the most that one question's calls can take."""
        outputs = [self._limit(call) for call in calls]
        total = NO_CALLS
        for call, output in zip(calls, outputs, strict=True):
            slot, prompt = self.spec.worker(call.worker), _prompt(call, call.prompt_bytes, outputs)
            service = service_tier(slot.config, slot.args)
            attempted = Attempted("unknown", "none", None, service, prompt, output)
            usd = upper_bound(attempted, self._price(call.worker))
            total += _one_call(prompt, output, usd)
        return total

    def dearest(self, chains: Iterable[Sequence[CountedCall]]) -> CallTotals:
        """Return the most that one of several ways to answer a question can take."""
        return max(map(self.at_most, chains), key=by_cost)

    def expected(self, calls: Sequence[CountedCall]) -> CallTotals:
        """Return what one question's calls take when workers go on as they did."""
        past = [self.past.of_worker(self.suite, call.worker) for call in calls]
        outputs = [one and ceil((one.output or Decimal(0)) / one.calls) for one in past]
        total = NO_CALLS
        for call, known, output in zip(calls, past, outputs, strict=True):
            if known is None or output is None:
                self.bounded.add(call.worker)
                total += UNKNOWN_CALL
                continue
            own = call.prompt_bytes
            own = ceil(own * known.sized / known.bytes) if known.bytes else own
            prompt, price = _prompt(call, own, outputs), self._price(call.worker)
            usd = None
            if price is not None and prompt is not None:
                slot = self.spec.worker(call.worker)
                usage = Usage(input=prompt, output=output, reasoning=self.reasoning)
                usd = cost(usage, price, service_tier(slot.config, slot.args))
            total += _one_call(prompt, output, usd)
        return total

    def _price(self, worker: str) -> Price | None:
        ref = self.spec.worker(worker).price_ref
        price = self.book.price(ref)
        if price is None:
            self.unknown[f"{worker} has no price ({ref} is not in {self.book.name})"] = None
        return price

    def _limit(self, call: CountedCall) -> int | None:
        limit = self.spec.worker(call.worker).config.max_tokens
        if limit is None:
            self.unknown[f"{call.worker} sets no max_tokens"] = None
            return None
        return limit * call.times_max_tokens


def _prompt(call: CountedCall, own: int, outputs: Sequence[int | None]) -> int | None:
    """Return the tokens that a call reads: its own, and the replies in it where all are known."""
    read = [outputs[one] for one in call.reads]
    return None if None in read else own + sum(one for one in read if one is not None)
