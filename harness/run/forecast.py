"""Counts a system's calls without making them, and estimates their cost.

Expected values are means of past calls of the same models. The maximum is the amount that a dollar
limit reserves (`upper_bound`), without HTTP retries. An unknown value is None, not the maximum.
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
"""Matches the placeholder of a future reply: a call's number between private-use characters."""


@dataclass(frozen=True, slots=True)
class CountedCall:
    """A model call that a system would make, with the size of its prompt."""

    worker: str
    prompt_bytes: int  # UTF-8 bytes of its texts, without the replies in it
    reads: tuple[int, ...] = ()
    """Numbers, from 0, of earlier calls whose replies are in the prompt, once per occurrence."""
    times_max_tokens: int = 1
    """Factor by which this call multiplies the worker's `max_tokens` (`Sampling`)."""


def chained_calls(worker: str, prompt_bytes: int, steps: int) -> list[CountedCall]:
    """Return `steps` calls of one worker, each of which reads the replies to all earlier calls."""
    return [CountedCall(worker, prompt_bytes, tuple(range(step))) for step in range(steps)]


class Unplannable(PodiumError):
    """Raised if a system's calls depend on a plan by a model; holds the call to that model."""

    def __init__(self, request: CountedCall) -> None:
        """Take the first call of the conductor, the model that writes plans."""
        super().__init__("a model writes this system's plans")
        self.first = request


@dataclass(slots=True)
class CountingPool(Pool):
    """A pool whose `ask` makes no call: it records the call that a system requests."""

    counted: list[CountedCall] = field(default_factory=list[CountedCall])

    async def ask(
        self,
        worker: str,
        messages: Sequence[ChatMessage],
        step: str,
        sampling: Sampling | None = None,
    ) -> Reply:
        """Record a call of `worker`, and return a placeholder as its reply.

        Raises `Unplannable` if a conductor is asked, UserError if the pool lacks the worker.
        """
        text = "\n".join(message.text for message in messages)
        size = len(PLACE.sub("", text).encode(errors="surrogatepass"))
        times = sampling.times_max_tokens if sampling else 1
        call = CountedCall(worker, size, tuple(map(int, PLACE.findall(text))), times)
        if worker == CONDUCTOR:
            raise Unplannable(call)
        self._model(worker)
        self.counted.append(call)
        return Reply(worker, f"\ue000{len(self.counted) - 1}\ue001", None)


async def _failing_trial(question: Question, reply: str) -> Grade:
    """Grade a reply as failing its public test, so that a system that retries makes all calls."""
    return Grade(0.0, None)


def counted_all(
    system: System,
    pairs: Sequence[tuple[Question, int]],
    workers: Sequence[str],
    spec: PoolSpec | None = None,
) -> list[tuple[CountedCall, ...]]:
    """Return a system's calls for each (question, epoch); Unplannable if a model must plan them."""
    variants = [slot.name for slot in spec.variants] if spec else []
    models = dict.fromkeys((*workers, *variants), cast(Model, None))
    if spec and spec.conductor:
        models[CONDUCTOR] = cast(Model, None)

    async def each() -> list[tuple[CountedCall, ...]]:
        calls: list[tuple[CountedCall, ...]] = []
        for question, epoch in pairs:
            pool = CountingPool(
                models=cast(Any, models), spec=spec, epoch=epoch, public_tests=_failing_trial
            )
            await system(question, pool)
            calls.append(tuple(pool.counted))
        return calls

    return anyio.run(each)


def worst_case(
    worker: str, initial: CountedCall, question: Question, planning: int, steps: int
) -> tuple[CountedCall, ...]:
    """Return the most calls for a question if a model plans and `worker` does all steps.

    Each step reads all earlier replies; its subtask is part of the conductor's reply. The second
    conductor call is a retry: the first request, its reply, and an error as long as that request.
    More conductor calls, up to `planning` in all, belong to later rounds: each reads all earlier
    conductor replies and the last step's reply.
    """
    calls = [initial]
    if planning > 1:
        calls.append(CountedCall(CONDUCTOR, 2 * initial.prompt_bytes, (0,)))
    written = len(calls) - 1
    size = len(question.text.encode())
    for index in range(steps):
        earlier = tuple(range(written + 1, written + 1 + index))
        calls.append(CountedCall(worker, size, (written, *earlier)))
    reads = (*range(written + 1), len(calls) - 1)
    for later in range(len(calls), len(calls) + planning - 2):
        calls.append(CountedCall(CONDUCTOR, 3 * initial.prompt_bytes, reads))
        reads = (*reads, later)
    return tuple(calls)


@dataclass(frozen=True, slots=True)
class CallTotals:
    """The totals of some calls: their number, tokens and dollars; a total of None is unknown."""

    calls: Decimal = Decimal(0)
    input: Decimal | None = Decimal(0)
    output: Decimal | None = Decimal(0)
    usd: Decimal | None = Decimal(0)
    sized: Decimal = Decimal(0)
    """Input tokens of past calls whose prompt size is known; `bytes` is the sum of these sizes."""
    bytes: Decimal = Decimal(0)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The values of all fields, in order."""
        return self.calls, self.input, self.output, self.usd, self.sized, self.bytes

    def __add__(self, addend: "CallTotals") -> "CallTotals":
        pairs = zip(self.parts, addend.parts, strict=True)
        sums: list[Any] = [None if None in pair else pair[0] + pair[1] for pair in pairs]
        return CallTotals(*sums)

    def times(self, factor: Decimal | int) -> "CallTotals":
        """Return the totals multiplied by a factor."""
        scaled: list[Any] = [None if value is None else value * factor for value in self.parts]
        return CallTotals(*scaled)

    def per(self, count: Decimal | int) -> "CallTotals":
        """Return the totals divided by a count."""
        shares: list[Any] = [None if value is None else value / count for value in self.parts]
        return CallTotals(*shares)


NO_CALLS = CallTotals()
UNKNOWN_CALL = CallTotals(Decimal(1), None, None, None)


def _sums() -> defaultdict[Any, CallTotals]:
    return defaultdict(CallTotals)


def _one_call(prompt: int | None, output: int | None, usd: Decimal | None) -> CallTotals:
    read, written = (None if value is None else Decimal(value) for value in (prompt, output))
    return CallTotals(Decimal(1), read, written, usd)


@dataclass(slots=True)
class PastRuns:
    """Totals of the model calls in past runs: per answer, per worker, and per suite for judges."""

    answers: dict[tuple[str, str], defaultdict[Any, CallTotals]] = field(
        default_factory=lambda: defaultdict(_sums)
    )
    """(suite, system) -> answer (question, epoch, sample) -> totals of the answer's calls."""
    workers: dict[tuple[str, str], CallTotals] = field(default_factory=_sums)
    """(suite, worker) -> totals of the worker's calls; the suite `""` stands for all suites."""
    judges: dict[str, CallTotals] = field(default_factory=_sums)  # suite -> totals of judging
    strangers: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """(suite, system) pairs that ran on models other than the pool's: their totals are not used."""

    def of_system(self, suite: str, system: str) -> list[CallTotals]:
        """Return the call totals of each past answer of a system on a suite; empty for none."""
        key = (suite, system)
        is_known = key in self.answers and key not in self.strangers
        return [*self.answers[key].values()] if is_known else []

    def of_worker(self, suite: str, worker: str) -> CallTotals | None:
        """Return a worker's past call totals on a suite, else on all suites; None if not called."""
        return self.workers.get((suite, worker)) or self.workers.get(("", worker))

    def add(self, row: Call, took: CallTotals) -> None:
        """Add a past call's totals (`took`) to those of its judge, or worker and answer."""
        if row.scope == "scoring":
            self.judges[row.suite] += took
        if row.scope != "inference":
            return
        for suite in (row.suite, ""):
            self.workers[suite, row.role] += took
        # Calls in training belong to no answer of a system.
        alone = task_name(row.suite, row.system, SELECTION)
        if row.counted and (row.task == alone or not row.task.endswith(f"({SELECTION})")):
            pair = (row.question, row.epoch, row.sample)
            self.answers[row.suite, row.system][pair] += took


def read_past(dirs: Sequence[Path], spec: PoolSpec, book: Book) -> PastRuns:
    """Return totals of the pool's past calls, priced by `book`; UserError if a file is damaged."""
    past = PastRuns()
    slots = {slot.name: slot for slot in spec.slots}
    runs = (files for path in dirs if has_system_runs(path) for files in system_runs_below(path))
    for row in (row for files in runs for row in rows_of(files)):
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
    """Return the mean of several call totals."""
    return sum(totals, NO_CALLS).per(len(totals))


def by_cost(take: CallTotals) -> tuple[bool, Decimal]:
    """Return a sort key for call totals, by cost; an unknown cost counts as the highest."""
    return take.usd is None, take.usd or Decimal(0)


@dataclass(slots=True)
class Estimator:
    """Estimates the cost of a pool's calls on a suite, and notes why some values are unknown."""

    spec: PoolSpec
    book: Book
    past: PastRuns
    suite: str
    unknown: dict[str, None] = field(default_factory=dict[str, None])  # reasons, in order
    bounded: set[str] = field(default_factory=set[str])
    """Workers without a past call; the expected cost of their calls is unknown."""
    reasoning: int | None = None  # reasoning tokens in an expected reply

    def at_most(self, calls: Sequence[CountedCall]) -> CallTotals:
        """Return the maximum totals (tokens and dollars) of one question's calls."""
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
        """Return the maximum totals of the costliest of several chains (sequences of calls)."""
        return max(map(self.at_most, chains), key=by_cost)

    def expected(self, calls: Sequence[CountedCall]) -> CallTotals:
        """Return the expected totals of one question's calls, from its workers' past calls."""
        past = [self.past.of_worker(self.suite, call.worker) for call in calls]
        outputs = [took and ceil((took.output or Decimal(0)) / took.calls) for took in past]
        total = NO_CALLS
        for call, took, output in zip(calls, past, outputs, strict=True):
            if took is None or output is None:
                self.bounded.add(call.worker)
                total += UNKNOWN_CALL
                continue
            size = call.prompt_bytes
            size = ceil(size * took.sized / took.bytes) if took.bytes else size
            prompt, price = _prompt(call, size, outputs), self._price(call.worker)
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


def _prompt(call: CountedCall, size: int, outputs: Sequence[int | None]) -> int | None:
    """Return a call's input tokens, with the replies that it reads; None if a reply has no size."""
    read = [outputs[index] for index in call.reads]
    return None if None in read else size + sum(tokens for tokens in read if tokens is not None)
