"""The cost of one model call, in `Decimal` US dollars: rates, tiers, and the parts of a price.

Tiers (higher rates for long prompts) are applied to each call, never to summed usage, since they
depend on the length of one request. An unknown cost is None, and so is every result computed from
an unknown cost.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from decimal import Decimal
from typing import Literal

from podium.harness.records import Usage

MTOK = Decimal(1_000_000)
HOUR_S = Decimal(3600)

Evidence = Literal["dated", "carried-back", ""]
"""How a price is known. `dated`: a source of the book's day states it. `carried-back`: a later
price, assumed to have been the same on that day. Empty: unknown, in a log older than this field."""

Service = Literal["standard", "batch", "flex", "priority"]


@dataclass(frozen=True, slots=True)
class Rates:
    """Prices of tokens, in US dollars per million. None: unknown, so such tokens have no price."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    """Rate for writing cache entries that last five minutes, or the provider's default time."""
    cache_write_1h: Decimal | None = None
    reasoning: Decimal | None = None
    """Rate for reasoning tokens; None: billed as output, as most providers do."""
    orchestration_in: Decimal | None = None
    """Rate for tokens that a product spends on its internal models; None: not published."""
    orchestration_in_cached: Decimal | None = None
    orchestration_out: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Tier:
    """Rates for all tokens of a request whose prompt exceeds `above` tokens, cached included."""

    above: int
    rates: Rates


@dataclass(frozen=True, slots=True)
class Gpu:
    """Own hardware: its price per hour, and its measured output tokens per second."""

    type: str
    count: int
    usd_per_hour: Decimal
    """Price of one GPU for one hour."""
    tokens_per_s: Decimal
    source: str


@dataclass(frozen=True, slots=True)
class Price(Rates):
    """The price of one model at one provider; the inherited rates apply below every tier."""

    tiers: tuple[Tier, ...] = ()
    """Rates for long prompts, sorted by `above`, lowest first."""
    request: Decimal = Decimal(0)
    services: Mapping[Service, Decimal] = field(default_factory=dict[Service, Decimal])
    """Service tier -> factor on all rates, e.g. `{"batch": Decimal("0.5")}`. A tier without
    a factor has no price, except `standard`."""
    full_rate: Mapping[Service, tuple[str, ...]] = field(
        default_factory=dict[Service, tuple[str, ...]]
    )
    """Service tier -> rates to which its factor does not apply, e.g. `{"batch":
    ("cache_read",)}`."""
    gpu: Gpu | None = None
    evidence: Evidence = "dated"
    launched: str = ""
    """First day on which the model could be called (ISO); empty if unknown."""
    source: str = ""
    """The source of this price, if another one than the book's."""

    def rates_for(self, prompt_tokens: int) -> tuple[Rates, str]:
        """Return the rates of a request by its number of prompt tokens, and the tier's name."""
        # Below every tier it returns this object: a copy for each of a million calls is slow.
        reached = [tier for tier in self.tiers if prompt_tokens > tier.above]
        return (reached[-1].rates, f">{reached[-1].above}") if reached else (self, "base")

    @property
    def base(self) -> Rates:
        """The rates of this price below every tier, without the tiers."""
        return Rates(*(getattr(self, rate.name) for rate in fields(Rates)))


@dataclass(frozen=True, slots=True)
class CallCost:
    """The parts of one call's cost, in US dollars, exact; `tier`: the price tier that applied."""

    input: Decimal
    cache_read: Decimal
    cache_write: Decimal
    output: Decimal
    orchestration: Decimal
    request: Decimal
    tier: str

    @property
    def total(self) -> Decimal:
        """The cost of the call: the sum of all parts."""
        tokens = self.input + self.cache_read + self.cache_write + self.output
        return tokens + self.orchestration + self.request


def costs(usage: Usage, price: Price, service: Service = "standard") -> CallCost | None:
    """Return the parts of a call's cost, or None if a rate that it needs is unknown."""
    # Cached input has its own rate and is not part of `usage.input`. If reasoning has its own rate,
    # a call that does not report its reasoning has no price.
    listed, tier = price.rates_for(usage.input_total)
    rates = _served(listed, price, service)
    if rates is None:
        return None
    cached, cached_in = usage.cache_write_1h, usage.orchestration_in_cached
    amounts = (
        _part((usage.input, rates.input)),
        _part((usage.cache_read, rates.cache_read)),
        _part((usage.cache_write - cached, rates.cache_write), (cached, rates.cache_write_1h)),
        _output(usage, rates),
        _part(
            (usage.orchestration_in - cached_in, rates.orchestration_in),
            (cached_in, rates.orchestration_in_cached),
            (usage.orchestration_out, rates.orchestration_out),
        ),
    )
    usd = [amount for amount in amounts if amount is not None]
    return CallCost(*usd, request=price.request, tier=tier) if len(usd) == len(amounts) else None


def _served(listed: Rates, price: Price, service: Service) -> Rates | None:
    """Return the rates times a service tier's factor; None if the price has no such factor."""
    if service == "standard":
        return listed
    rates = listed.base if isinstance(listed, Price) else listed
    factor = price.services.get(service)
    if factor is None:
        return None
    full_rates = price.full_rate.get(service, ())
    changed = {
        name: rate * factor
        for name, rate in asdict(rates).items()
        if rate is not None and name not in full_rates
    }
    return replace(rates, **changed)


def _output(usage: Usage, rates: Rates) -> Decimal | None:
    if rates.reasoning is None or not usage.output:
        return _part((usage.output, rates.output))
    if usage.reasoning is None or usage.reasoning > usage.output:
        return None  # the reasoning is unknown; text tokens must not be negative
    text_tokens = usage.output - usage.reasoning
    return _part((text_tokens, rates.output), (usage.reasoning, rates.reasoning))


def cost(usage: Usage, price: Price, service: Service = "standard") -> Decimal | None:
    """Return a call's cost, in US dollars, or None if a rate that it needs is unknown.

    >>> cost(Usage(input=2_000_000), Price(Decimal("1.25"), Decimal("10")))
    Decimal('2.50')
    """
    call_cost = costs(usage, price, service)
    return None if call_cost is None else call_cost.total


def list_cost(usage: Usage, price: Price) -> Decimal | None:
    """Return a call's cost at list price, as if nothing had been cached: reports compare this."""
    # The prefixes in a provider's cache depend on earlier requests, so they would distort a
    # comparison of systems.
    if not usage.is_cached:
        return cost(usage, price)
    uncached = replace(
        usage,
        input=usage.input_total,
        cache_read=0,
        cache_write=0,
        cache_write_1h=0,
        orchestration_in_cached=0,
    )
    return cost(uncached, price)


def gpu_seconds(usage: Usage, gpu: Gpu) -> Decimal:
    """Return a call's GPU seconds, summed over all GPUs, computed from its output tokens."""
    return usage.output / gpu.tokens_per_s * gpu.count


def gpu_cost(usage: Usage, gpu: Gpu) -> Decimal:
    """Return a call's cost on own hardware, in US dollars; never added to `cost`."""
    return gpu_seconds(usage, gpu) * gpu.usd_per_hour / HOUR_S


def _part(*pairs: tuple[int, Decimal | None]) -> Decimal | None:
    """Return the sum of tokens times rates, in dollars; None if the rate of a token is unknown."""
    total = Decimal(0)
    for tokens, rate in pairs:
        if tokens:
            if rate is None:
                return None
            total += tokens * rate / MTOK
    return total
