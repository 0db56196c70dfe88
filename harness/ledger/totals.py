"""All sums of calls, per question and per system: for tables, reports and spending limits.

Two kinds of dollars are never mixed, and neither includes calls that grade. *Would-be* dollars
compare systems: the graded attempts at the list price in the log's price book, as if nothing had
been cached. *Paid* dollars are what providers bill for all attempts, from journals if there are
any; they are 0 for recorded and rehearsal workers.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from podium.harness.errors import UserError
from podium.harness.ledger.call import (
    LENGTH_REFUSED,
    ZERO,
    Call,
    Phase,
    Scope,
    contradictions,
)
from podium.harness.ledger.runs import PLAIN, RunFacts
from podium.harness.pool_config import REPLAYING
from podium.harness.records import CONDUCTOR, Usage

Key = TypeVar("Key")


@dataclass(slots=True)
class CallSum:
    """Sums of the known values of some calls, and numbers of calls whose value is unknown."""

    calls: int = 0
    failed: int = 0
    untold: int = 0
    """Number of calls whose tokens are unknown; refused calls used no tokens and do not count."""
    unthought: int = 0
    """Number of calls that do not report their reasoning tokens."""
    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    orchestration: int = 0
    usd: Decimal = ZERO
    unbilled: int = 0
    usd_list: Decimal = ZERO
    unlisted: int = 0
    high: Decimal = ZERO
    unbounded: int = 0
    """Number of calls whose cost has no known maximum."""
    unpriced: int = 0
    """Number of answered calls without a price; if it is not 0, sums of dollars are unknown."""
    unknown: int = 0
    on_gpu: int = 0
    gpu_s: Decimal = ZERO
    usd_gpu: Decimal = ZERO
    contradictory: int = 0
    """Number of calls whose token counts contradict each other."""

    def add(self, call: Call) -> None:
        """Add one `Call` row; each row counts as a call, even if it is a repeated HTTP attempt."""
        self.calls += 1
        self.failed += call.error is not None
        self._tokens(call)
        if call.usd is None:
            self.unbilled += 1
        else:
            self.usd += call.usd
        if call.usd_list is None:
            self.unlisted += 1
        else:
            self.usd_list += call.usd_list
        if call.usd_high is None:
            self.unbounded += 1
        else:
            self.high += call.usd_high
        if call.billable == "unknown":
            self.unknown += 1
        elif call.usd is None or call.usd_list is None:
            self.unpriced += 1
        if call.gpu_s is not None:
            self.on_gpu += 1
            self.gpu_s += call.gpu_s
            self.usd_gpu += call.usd_gpu or ZERO

    def _tokens(self, call: Call) -> None:
        if call.output is None:
            self.untold += is_uncounted(call)
            self.unthought += is_uncounted(call)
            return
        self.input += call.input_uncached or 0
        self.cache_read += call.cache_read or 0
        self.cache_write += call.cache_write or 0
        self.output += call.output
        self.contradictory += any(contradictions(call))
        self.orchestration += (call.orchestration_in or 0) + (call.orchestration_out or 0)
        if call.reasoning is None:
            self.unthought += 1
        else:
            self.reasoning += call.reasoning

    def plus(self, summand: "CallSum") -> "CallSum":
        """Return the sum of this `CallSum` and another one, `summand`."""
        pairs = ((getattr(self, name), getattr(summand, name)) for name in SUMMED)
        return CallSum(*(value + addend for value, addend in pairs))

    @property
    def tokens_in(self) -> int | None:
        """Input tokens of the calls, cached ones included; None if a call's tokens are unknown."""
        return None if self.untold else self.input + self.cache_read + self.cache_write

    @property
    def tokens_out(self) -> int | None:
        """Output tokens of the calls, reasoning included; None if a call's tokens are unknown."""
        return None if self.untold else self.output

    @property
    def tokens_reasoning(self) -> int | None:
        """Reasoning tokens of all calls; None if a call did not report them."""
        return None if self.unthought else self.reasoning

    @property
    def billed(self) -> Decimal | None:
        """Billed dollars of the calls; None if the billed amount of one is unknown."""
        return None if self.unbilled else self.usd

    @property
    def listed(self) -> Decimal | None:
        """Dollars at list price, as if nothing were cached; None if a list price is unknown."""
        return None if self.unlisted else self.usd_list

    @property
    def paid(self) -> "Paid":
        """The billed dollars, as a range if the cost of a call is unknown."""
        high = None if self.unbounded else self.high
        return Paid(self.usd, high, self.unknown, self.unbilled - self.unknown)


SUMMED = tuple(CallSum.__dataclass_fields__)


def add_up(calls: Iterable[Call]) -> CallSum:
    """Return the sums (counts, tokens, dollars) of some `Call` rows."""
    sums = CallSum()
    for call in calls:
        sums.add(call)
    return sums


def is_uncounted(call: Call) -> bool:
    """Return whether a call used an unknown number of tokens, so that sums are unknown, too."""
    # A refused request (also one refused for its length) used none; a reply in the local cache used
    # some when it was made. `spared` in harness/ledger/witness.py is the same condition.
    answered = call.cache == "read" and call.stop != LENGTH_REFUSED
    return call.output is None and (call.billable != "no" or answered)


def usage_of(calls: Iterable[Call]) -> Usage | None:
    """Return the tokens of some calls, by kind; None if a billable call reported no usage."""
    usages = [call.usage for call in calls if call.billable != "no"]
    reported = [usage for usage in usages if usage is not None]
    return sum(reported, Usage(reasoning=0)) if len(reported) == len(usages) else None


def sums_by(calls: Iterable[Call], key: Callable[[Call], Key]) -> dict[Key, CallSum]:
    """Return the sum of the calls of each group; `key` returns a call's group."""
    sums: dict[Key, CallSum] = defaultdict(CallSum)
    for call in calls:
        sums[key(call)].add(call)
    return dict(sums)


def total(sums: Iterable[CallSum]) -> CallSum:
    """Return the sum of several `CallSum`s, e.g. of all groups of a run's calls."""
    return reduce(CallSum.plus, sums, CallSum())


class CallKind(NamedTuple):
    """The properties of a call by which a run's calls are grouped before they are added up."""

    newest: bool
    role: str
    model: str
    phase: Phase
    counted: bool
    """True if the call belongs to the newest, graded attempt at its question."""
    billable: bool
    """False for replies from a local cache, which have a list price although nothing was paid."""


CallSums = Mapping[CallKind, CallSum]
"""Sums of a run's calls by kind; each call is in exactly one sum."""


def in_table(kind: CallKind) -> bool:
    """Return whether calls of this kind count in a report's figures per query."""
    return kind.phase == "solve" and kind.counted


@dataclass(frozen=True, slots=True)
class Paid:
    """US dollars that providers billed for some calls: a range, if an amount is unknown."""

    low: Decimal = ZERO
    high: Decimal | None = ZERO
    """None if the maximum cost of a call, or the price of a billed call, is unknown."""
    unknown: int = 0
    unpriced: int = 0

    @property
    def exact(self) -> Decimal | None:
        """The billed dollars if they are known exactly; None if they are only known as a range."""
        return self.low if self.low == self.high else None


ByScope = Mapping[Scope, Paid]


def last_attempts(calls: Iterable[Call]) -> list[Call]:
    """Return the last HTTP attempt of each call, without the failed attempts before it."""
    # A provider's failures vary by day, like its caches, so comparisons leave them out; their
    # possible cost is in the bounds of the billed dollars.
    newest: dict[str, Call] = {}
    for call in calls:
        if call.call not in newest or call.attempt > newest[call.call].attempt:
            newest[call.call] = call
    return list(newest.values())


@dataclass(frozen=True, slots=True)
class QueryTotals:
    """Sums of the calls that answered one (question, epoch) pair; None for unknown sums."""

    calls: int
    tokens_in: int | None
    tokens_out: int | None
    tokens_reasoning: int | None
    worker_tokens_out: int | None
    """Output tokens of workers alone, as the Conductor paper counts tokens (for its Table 6)."""
    conductor_tokens: int | None
    usd: Decimal | None
    worker_calls: int
    """Number of worker calls with a reply; a system may declare how many it expects."""
    conductor_s: float | None
    """Planning seconds of a conductor that runs in podium's process; None if none or unknown."""


BESIDE: Collection[Scope] = ("scoring", "environment")
"""Scopes (purposes) of calls that belong to a question but are not its system's work."""


def query_totals(calls: Iterable[Call], conductor_s: float | None = None) -> QueryTotals:
    """Return the sums of one question's calls (last attempts only), without scopes in `BESIDE`."""
    sums = sums_by(
        (call for call in calls if call.scope not in BESIDE), lambda call: call.role == CONDUCTOR
    )
    workers, conductor = sums.get(False, CallSum()), sums.get(True, CallSum())
    all_calls = workers.plus(conductor) if conductor.calls else workers
    planning = conductor.input + conductor.cache_read + conductor.cache_write + conductor.output
    return QueryTotals(
        calls=all_calls.calls,
        tokens_in=all_calls.tokens_in,
        tokens_out=all_calls.tokens_out,
        tokens_reasoning=all_calls.tokens_reasoning,
        worker_tokens_out=workers.tokens_out,
        conductor_tokens=None if conductor.untold else planning,
        usd=all_calls.listed,
        worker_calls=workers.calls - workers.failed,
        conductor_s=conductor_s,
    )


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """The result of one (question, epoch) pair in its newest log: grade, workflow, call totals."""

    question: str
    epoch: int
    sample: str
    value: float | None
    """The grade, from 0.0 to 1.0; None if the sample failed or could not be graded."""
    reason: str
    parsed: bool
    """False if the question was graded wrong because the reply has no readable answer."""
    kind: str
    topic: str
    steps: int | None
    depth: int | None
    stopped: str | None
    critical_path_s: float | None
    """Seconds of the longest chain of calls (see critical_path.py); None for stored replies."""
    totals: QueryTotals
    official: float | None = None
    """The verdict of the published evaluator, if the suite gives one beside its own verdict."""
    fragile: bool = False
    """True if a test of the answer's program ended near the time limit: the verdict is unsure."""
    erratum: bool = False
    turns: int | None = None
    """Number of turns (answers with their tool calls); None for a task of single questions."""
    tool_calls: int | None = None
    unused: float | None = None
    """Unused part of an equal budget, in the budget's unit; None without such a budget."""
    limit: str | None = None
    """The task's limit that ended the sample, e.g. `message` or `time`; None if none did."""
    vote: str | None = None
    """Digest of the answer found in the reply, equal for any order of options; None if none."""
    fallback: str = ""
    """If the system's method failed: a sentence on how it answered instead; else empty."""
    planned: bool = False
    plan_shape: str | None = None
    """The plan's workers and the steps that each step reads; None if no plan was executed."""
    plan_fault: str | None = None
    """The class of fault of a plan that could not be executed; None if there is no such plan."""
    groups: Mapping[str, str] = field(default_factory=dict[str, str])
    overhead_s: float | None = None
    """Seconds beyond `critical_path_s`: waiting for connections, failed attempts, local work."""
    overstated: bool = False
    """Whether Inspect's token total of the sample exceeds the sum of its calls."""
    too_long: bool = False
    """True if the question was graded wrong because its last request was refused as too long."""

    @property
    def graded(self) -> bool:
        """Whether the question has a grade in this epoch."""
        return self.value is not None


@dataclass(frozen=True, slots=True)
class SystemRun:
    """One system's run of one suite: the newest result of each query, and sums of all its calls."""

    facts: RunFacts
    paths: tuple[Path, ...]
    asked: int
    """Number of (question, epoch) pairs that the run was planned to ask."""
    epochs: int
    attempts: tuple[QuestionResult, ...]
    spend: CallSums
    paid: ByScope | None = None
    """Paid dollars by purpose of calls, from journals; None without journals or paid calls."""

    @property
    def logs(self) -> tuple[str, ...]:
        """Names of the run's log files, newest first."""
        return tuple(path.name for path in self.paths)


@dataclass(frozen=True, slots=True)
class SystemTotals:
    """Totals of a system on a suite, and means per graded query (one question in one epoch)."""

    n_asked: int
    n_graded: int
    n_unparsed: int
    """Queries graded wrong because their reply has no readable answer. Excludes queries without a
    reply: the plan failed, or the last request was longer than its worker's context."""
    n_too_long: int
    """Queries graded wrong because the last request was refused as too long."""
    calls: float | None
    tokens_in: float | None
    tokens_out: float | None
    tokens_reasoning: float | None
    worker_tokens_out: float | None
    conductor_tokens: float | None
    usd: Decimal | None
    paid: Paid
    usd_paid: Decimal | None
    """Paid dollars per begun query (`usd_spent`: in total); both are None if `paid` is a range."""
    usd_spent: Decimal | None
    usd_grading: Decimal | None
    steps: float | None
    depth: float | None
    critical_path_s: float | None
    overhead_s: float | None
    n_unpriced: int
    """Number of calls with a reply but no price; if it is not 0, dollars are unknown."""
    n_planned: int
    """Number of graded queries for which a model was asked for a plan."""
    plan_faults: Mapping[str, int]
    """Class of fault -> number of graded queries whose plan could not be executed."""
    conductor_s: float | None
    """Planning seconds of a conductor that runs in podium's process; None if none or unknown."""
    n_failed: int
    n_contradictory: int
    """Number of calls whose own token counts contradict each other."""
    n_overstated: int
    """Number of queries for which Inspect's token total exceeds the sum of the calls."""

    @property
    def usd_at_least(self) -> Decimal:
        """Lower bound of the paid dollars: calls with unknown outcome may be billed, too."""
        return self.paid.low


MEANS = (
    "calls", "tokens_in", "tokens_out", "tokens_reasoning", "worker_tokens_out",
    "conductor_tokens", "conductor_s",
)  # fmt: skip

TIMES = ("critical_path_s", "overhead_s")


def system_totals(run: SystemRun) -> SystemTotals:
    """Return means over a system's graded queries, and the sum of the spend of all its attempts."""
    graded = [attempt for attempt in run.attempts if attempt.graded]
    rows = [attempt.totals for attempt in graded]
    pair_count, all_calls = len(run.attempts), total(run.spend.values())
    answering, scoring = _paid(run, "inference", "solve"), _paid(run, "scoring", "score")
    spent, facts = answering.exact, run.facts
    replayed = facts.label == "recorded" or any(
        worker.model.startswith(f"{REPLAYING}/") for worker in facts.workers.values()
    )
    return SystemTotals(
        n_asked=run.asked,
        n_graded=len(graded),
        n_unparsed=sum(not (row.parsed or row.plan_fault or row.too_long) for row in graded),
        n_too_long=sum(attempt.too_long for attempt in graded),
        **{name: mean_if_known([getattr(row, name) for row in rows]) for name in MEANS},
        usd=mean_if_known([row.usd for row in rows]),
        paid=answering,
        usd_paid=spent / pair_count if spent is not None and pair_count else None,
        usd_spent=spent,
        usd_grading=scoring.exact,
        steps=mean_if_known([attempt.steps for attempt in graded]),
        depth=mean_if_known([attempt.depth for attempt in graded]),
        # A replayed reply comes at once: the duration of the recorded call is unknown.
        **{
            name: None if replayed else mean_if_known([getattr(row, name) for row in graded])
            for name in TIMES
        },
        n_unpriced=all_calls.unpriced,
        n_planned=sum(attempt.planned for attempt in graded),
        plan_faults=Counter(attempt.plan_fault for attempt in graded if attempt.plan_fault),
        n_failed=all_calls.failed,
        n_contradictory=all_calls.contradictory,
        n_overstated=sum(attempt.overstated for attempt in run.attempts),
    )


def _paid(run: SystemRun, scope: Scope, phase: Phase) -> Paid:
    """Return paid dollars of one scope from journals, or from logs if the run has no journals."""
    # In logs, a failed call without billing information has no upper bound. If journals have less
    # than the logs, some are missing, so the paid dollars have no upper bound either.
    if run.facts.label not in ("live", PLAIN):
        return Paid()
    kinds = ((kind, call_sum) for kind, call_sum in run.spend.items() if kind.phase == phase)
    billed = total(call_sum for kind, call_sum in kinds if kind.billable).paid
    if run.paid is None:
        return billed
    paid = run.paid.get(scope, Paid())
    if billed.low <= paid.low:
        return paid
    return Paid(billed.low, None, paid.unknown, paid.unpriced)  # a journal is missing


def mean_if_known(values: Sequence[Any]) -> Any:
    """Return the mean of floats or dollars; None if there are no values or a value is unknown."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(values) if values and len(numbers) == len(values) else None


@dataclass(frozen=True, slots=True)
class SpentSoFar:
    """Dollars spent on all attempts in a run's directory: a resumed run starts from this amount."""

    usd: Decimal = ZERO
    unbounded: Counter[str] = field(default_factory=Counter[str])
    """Price key -> number of attempts that may have been billed an unknown amount: they have no
    maximum cost, and no billed call with the same price gives an estimate."""
    dearest: Mapping[str, Decimal] = field(default_factory=dict[str, Decimal])
    """Price key -> cost of the dearest call with this price, in dollars."""


def spent_by(
    calls: Iterable[Call], overall: SpentSoFar | None = None, limit: str = "--max-usd"
) -> SpentSoFar:
    """Add up the dollars of calls, for a spending limit; UserError if a call has no price.

    If it is unknown whether an attempt was billed, the attempt counts at its maximum cost. If it
    has no maximum, it counts at the cost of the dearest call with its price, among these calls and
    in the `overall` spend, of which these calls are a part.
    """
    usd = ZERO
    dearest: dict[str, Decimal] = dict(overall.dearest) if overall else {}
    unbounded: Counter[str] = Counter()
    for call in calls:
        if call.billable == "unknown" and call.usd_high is None:
            unbounded[call.price_ref] += 1
        elif call.billable == "unknown":
            usd += call.usd_high or ZERO
        elif call.usd is None:
            raise UserError(
                f"Calls of {call.role!r} in {call.journal or call.log} have no price, so {limit} "
                "cannot be enforced. Leave it out, or start in another --log-dir with a price book "
                "that has the worker."
            )
        elif call.billable == "yes":
            usd += call.usd
            dearest[call.price_ref] = max(call.usd, dearest.get(call.price_ref, ZERO))
    assumed = (dearest[ref] * often for ref, often in unbounded.items() if ref in dearest)
    unresolved = {ref: often for ref, often in unbounded.items() if ref not in dearest}
    return SpentSoFar(usd + sum(assumed, ZERO), Counter(unresolved), dearest)
