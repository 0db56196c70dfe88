"""Admission of requests: concurrency, models, and dollars per request, key, day and in total."""

from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import ceil
from typing import NamedTuple, Protocol

from podium.harness.budget import LimitName, Spend
from podium.harness.errors import DayLimit, SpendLimit, UserError
from podium.harness.ledger.call import Call
from podium.harness.ledger.totals import SpentSoFar, spent_by
from podium.harness.prices import Book
from podium.serving.access_keys import Caller
from podium.serving.exchange import Refusal

NEXT_DAY = "; a new day begins at 00:00 UTC."
A_REQUEST = LimitName("--max-usd-per-query", one="request")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingLimits:
    """Limits of client requests; None: no limit. The keys file may set others for a single key."""

    max_usd: Decimal | None = None
    max_usd_per_query: Decimal | None = None
    max_usd_per_day: Decimal | None = None
    max_usd_per_key: Decimal | None = None
    max_calls: int = 30
    """Maximum model calls of one client request."""
    deadline_s: float = 600
    concurrency: int = 64
    """Maximum concurrent requests of one access key."""


class RequestBefore(Protocol):
    """A request that an earlier server process has answered, as read from its journal."""

    @property
    def key(self) -> str | None:
        """Return the name of the client's access key; None if no key was needed."""
        ...

    @property
    def day(self) -> date:
        """Return the day in UTC on which the request was admitted."""
        ...

    @property
    def rows(self) -> Sequence[Call]:
        """Return the request's model calls: one row per attempt."""
        ...


class MeterScope(NamedTuple):
    """What one spend meter counts: dollars of all clients or of one key, in total or on a day."""

    everybody: bool = True
    key: str | None = None
    day: date | None = None


def _scopes(key: str | None, day: date) -> tuple[MeterScope, ...]:
    """Return the meters that count a call's cost, in the order in which limits are checked.

    They count: the key on that day, the key in total, all clients on that day, and in total.
    """
    return MeterScope(False, key, day), MeterScope(False, key), MeterScope(day=day), MeterScope()


@dataclass(frozen=True, slots=True)
class SpentBefore:
    """What earlier server processes spent, from which the spend meters start."""

    by_scope: Mapping[MeterScope, SpentSoFar] = field(default_factory=dict[MeterScope, SpentSoFar])
    unpriced: str = ""
    """Why no dollar limit can be enforced (calls of unknown cost); empty if every cost is known."""

    @classmethod
    def of(cls, requests: Iterable[RequestBefore]) -> "SpentBefore":
        """Add up the cost of requests in the journals for each spend meter."""
        rows: dict[MeterScope, list[Call]] = defaultdict(list)
        for request in requests:
            for scope in _scopes(request.key, request.day):
                rows[scope] += request.rows
        try:
            total = spent_by(rows[MeterScope()], limit="a limit of dollars")
        except UserError as error:
            return cls(unpriced=str(error))
        return cls({scope: spent_by(calls, total) for scope, calls in rows.items()})


class Admission:
    """Admits requests within the limits, and keeps the meters of dollars spent by all clients."""

    def __init__(
        self,
        book: Book,
        limits: ServingLimits,
        clock: Callable[[], datetime],
        earlier: SpentBefore | None = None,
    ) -> None:
        """Count the cost of `earlier` requests; UserError if unknown and a limit is set."""
        self._book, self.limits, self._clock = book, limits, clock
        self._before = earlier or SpentBefore()
        self._day = date.min
        self._meters: dict[MeterScope, Spend] = {}
        self._within: Counter[str | None] = Counter()
        self.spend = self._meter(MeterScope(), limits.max_usd, LimitName("--max-usd"))
        """The meter of the dollars that all requests together spent."""
        shared = limits.max_usd, limits.max_usd_per_day, limits.max_usd_per_key
        if self._before.unpriced and any(limit is not None for limit in shared):
            raise UserError(self._before.unpriced)

    @contextmanager
    def admit(self, caller: Caller, model: str, *also: str) -> Generator[Spend]:
        """Admit a request for a `with` block, yield its meter; Refusal if a limit is reached."""
        if not caller.may_ask(model, *also):
            text = f"This key has no access to {model}. Request another model."
            raise Refusal(403, "forbidden", text, param="model")
        cap = caller.concurrency or self.limits.concurrency
        if self._within[caller.name] >= cap:
            text = (
                f"This key has {cap} requests in flight, its maximum. Try again when one has ended."
            )
            raise Refusal(429, "too_many", text, retry_after_s=1)
        above = self._above(caller)
        self._refuse_spent(above)
        self._within[caller.name] += 1
        try:
            yield Spend(self._book, self.limits.max_usd_per_query, above=above, name=A_REQUEST)
        finally:
            self._within[caller.name] -= 1

    def refusal(self, stopped: SpendLimit) -> Refusal:
        """Return the refusal (429) of a request which a limit in dollars stopped."""
        wait = None
        if isinstance(stopped, DayLimit):
            wait = max(1, ceil((stopped.ends - self._clock()).total_seconds()))
        return Refusal(429, "out_of_budget", str(stopped), retry_after_s=wait)

    @property
    def in_flight(self) -> int:
        """Return the number of requests in flight."""
        return self._within.total()

    def _above(self, caller: Caller) -> tuple[Spend, ...]:
        """Return the spend meters that a request shares with others, with their current limits."""
        day = self._today()
        ends = datetime.combine(day + timedelta(days=1), time(), UTC)
        a_keys_day = LimitName(f"{caller.name}.max_usd_per_day", NEXT_DAY, ends=ends)
        of_key = caller.max_usd, LimitName(f"{caller.name}.max_usd")
        if caller.max_usd is None:
            of_key = self.limits.max_usd_per_key, LimitName("--max-usd-per-key")
        limits = (
            (caller.max_usd_per_day, a_keys_day),
            of_key,
            (self.limits.max_usd_per_day, LimitName("--max-usd-per-day", NEXT_DAY, ends=ends)),
            (self.limits.max_usd, self.spend.name),
        )
        scopes = _scopes(caller.name, day)
        return tuple(self._meter(scope, *pair) for scope, pair in zip(scopes, limits, strict=True))

    def _today(self) -> date:
        """Return today's date in UTC; on a new day, drop the spend meters of earlier days."""
        # Requests in flight keep the meters they were admitted with. If the system clock is set
        # back, a day's dollars are not granted twice.
        if (day := self._clock().astimezone(UTC).date()) > self._day:
            self._day = day
            self._meters = {key: m for key, m in self._meters.items() if key.day in (None, day)}
        return self._day

    def _meter(self, scope: MeterScope, limit: Decimal | None, name: LimitName) -> Spend:
        """Return a spend meter; sets its limit each time, since the keys file may have changed."""
        if scope not in self._meters:
            spent = self._before.by_scope.get(scope, SpentSoFar())
            self._meters[scope] = Spend(
                self._book,
                spent=spent.usd,
                unbounded=Counter(spent.unbounded),
                above=() if scope == MeterScope() else (self.spend,),
            )
        meter = self._meters[scope]
        meter.limit, meter.name = limit, name
        return meter

    def _refuse_spent(self, above: Sequence[Spend]) -> None:
        """Raise Refusal (429) if a dollar limit is reached; limits with daily reset come last."""
        for meter in sorted(above, key=lambda each: each.name.ends is not None):
            if meter.limit is None:
                continue
            if self._before.unpriced:
                raise Refusal(429, "out_of_budget", self._before.unpriced)
            if meter.unpriced is not None or meter.gone >= meter.limit:
                raise self.refusal(meter.refusal(None))
