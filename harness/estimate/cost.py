"""What counted calls will cost: expected, by a worker's past calls, and at most, by its limits.

At most is what a limit holds back (`upper_bound`): every byte of a prompt is a token, every reply
as long as `max_tokens` lets it be, at the dearest rates that may hold. A reply that is read again
takes as many tokens as were written. HTTP retries are not in it. Unknown is None: a worker without
a price, or without `max_tokens`; and what is expected of one of whom no past call is known, for a
bound is no expectation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import ceil

from harness.estimate.past import Past, Sums
from harness.estimate.plans import CountedCall
from harness.ledger.billing import Attempted, upper_bound
from harness.pool_file import PoolSpec
from harness.prices import Book
from harness.prices.pricing import cost
from harness.records import Usage
from harness.service import service_of


@dataclass(frozen=True, slots=True)
class Take:
    """What some calls take; None is unknown."""

    calls: Decimal = Decimal(0)
    input: Decimal | None = Decimal(0)
    output: Decimal | None = Decimal(0)
    usd: Decimal | None = Decimal(0)

    def __add__(self, other: "Take") -> "Take":
        return Take(
            self.calls + other.calls,
            plus(self.input, other.input),
            plus(self.output, other.output),
            plus(self.usd, other.usd),
        )

    def times(self, factor: Decimal) -> "Take":
        """Return the take of so many such things."""
        return Take(
            self.calls * factor,
            _scaled(self.input, factor),
            _scaled(self.output, factor),
            _scaled(self.usd, factor),
        )


def _scaled(value: Decimal | None, factor: Decimal) -> Decimal | None:
    return None if value is None else value * factor


def plus(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    """Return a sum; unknown when either part is."""
    return None if one is None or other is None else one + other


@dataclass(slots=True)
class Estimator:
    """Prices calls of one pool; notes why something stayed unknown."""

    spec: PoolSpec
    book: Book
    past: Past
    suite: str
    unknown: dict[str, None] = field(default_factory=dict[str, None])
    """Reasons, in order."""
    bounded: set[str] = field(default_factory=set[str])
    """Workers of whom no past call is known, so that nothing is expected of them."""

    def at_most(self, calls: Sequence[CountedCall]) -> Take:
        """Return the most that one question's calls can take."""
        return self._sum(calls, [self._limit(call) for call in calls], None)

    def expected(self, calls: Sequence[CountedCall]) -> Take:
        """Return what one question's calls take when workers go on as they did."""
        outputs: list[int | None] = []
        for call in calls:
            past = self.past.of_worker(self.suite, call.worker)
            if past is None:
                self.bounded.add(call.worker)
            outputs.append(None if past is None else _mean_output(past))
        return self._sum(calls, outputs, self.past)

    def _sum(
        self, calls: Sequence[CountedCall], outputs: Sequence[int | None], past: Past | None
    ) -> Take:
        total = Take()
        for call, output in zip(calls, outputs, strict=True):
            own = call.prompt_bytes
            known = past.of_worker(self.suite, call.worker) if past else None
            if past and known is None:
                total += Take(Decimal(1), None, None, None)
                continue
            if known is not None and known.bytes:
                own = ceil(Decimal(own) * known.sized / known.bytes)
            read = [outputs[one] for one in call.reads]
            said = [one for one in read if one is not None]
            prompt = own + sum(said) if len(said) == len(read) else None
            total += self._one(call.worker, prompt, output, at_most=past is None)
        return total

    def first(self, calls: Sequence[CountedCall]) -> Decimal | None:
        """Return the most that a question's first call can cost; None where nothing bounds it."""
        return self.at_most(calls[:1]).usd if calls else None

    def _one(self, worker: str, prompt: int | None, output: int | None, *, at_most: bool) -> Take:
        ref = self.spec.worker(worker).price_ref
        price = self.book.price(ref)
        if price is None:
            self.unknown[f"{worker} has no price ({ref} is not in {self.book.name})"] = None
        usd = None
        if at_most:
            usd = self._bound(worker, prompt, output)
        elif price is not None and prompt is not None and output is not None:
            usd = cost(Usage(input=prompt, output=output), price)
        return Take(
            Decimal(1),
            None if prompt is None else Decimal(prompt),
            None if output is None else Decimal(output),
            usd,
        )

    def _bound(self, worker: str, prompt: int | None, output: int | None) -> Decimal | None:
        slot = self.spec.worker(worker)
        service = service_of(slot.config, slot.args)
        attempted = Attempted("unknown", "none", None, service, prompt, output)
        return upper_bound(attempted, self.book.price(slot.price_ref))

    def _limit(self, call: CountedCall) -> int | None:
        limit = self.spec.worker(call.worker).config.max_tokens
        if limit is None:
            self.unknown[f"{call.worker} sets no max_tokens"] = None
            return None
        return limit * call.times_max_tokens


def _mean_output(past: Sums) -> int:
    return ceil(Decimal(past.output) / past.calls)


def mean_of(found: Sequence[Sums]) -> Take:
    """Return what a past answer took on average."""
    count = Decimal(len(found))
    usd: Decimal | None = Decimal(0)
    for one in found:
        usd = plus(usd, one.usd)
    return Take(
        Decimal(sum(one.calls for one in found)) / count,
        Decimal(sum(one.input for one in found)) / count,
        Decimal(sum(one.output for one in found)) / count,
        None if usd is None else usd / count,
    )


def dearness(take: Take) -> tuple[bool, Decimal]:
    """Return a sort key: what is unknown may be the dearest."""
    return take.usd is None, take.usd or Decimal(0)
