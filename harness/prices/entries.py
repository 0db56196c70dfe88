"""One entry of a price book, between plain TOML or JSON values and `Price`.

Books come in from outside, so every field is checked here, and `BadEntry` says in words what is
wrong with which. Not here: files and dates of books (harness/prices/books.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import cast

from harness.parsing import decimal_of
from harness.prices.pricing import Evidence, Gpu, Price, Rates, Service, Tier

Row = Mapping[str, object]

RATES = (
    "input",
    "output",
    "cache_read",
    "cache_write",
    "cache_write_1h",
    "reasoning",
    "orchestration_in",
    "orchestration_in_cached",
    "orchestration_out",
)
"""US dollars per million tokens, as `Rates` has them."""

OTHERS = ("request", "tiers", "services", "full_rate", "gpu", "evidence", "launched", "source")
SERVICES: Mapping[str, Service] = {"batch": "batch", "flex": "flex", "priority": "priority"}
"""What a book may give a factor for; `standard` is the book itself."""

EVIDENCE: Mapping[object, Evidence] = {"dated": "dated", "carried-back": "carried-back", "": ""}
LARGEST = Decimal(1_000_000)
SMALLEST = Decimal("1e-12")
"""Between these, a call of a billion tokens is priced within the 28 digits of Python's decimals."""

GPU = ("type", "count", "usd_per_hour", "tokens_per_s", "source")


class BadEntry(ValueError):
    """What is wrong with one entry of a book, named."""


def price_from(ref: str, row: object, evidence: Evidence) -> Price:
    """Return the price that an entry states; `evidence` is for an entry that states none.

    BadEntry names the entry and the field that is wrong.
    """
    name = f"entry {ref!r}"
    fields = _table(name, row)
    if unknown := sorted(set(fields) - {*RATES, *OTHERS}):
        raise BadEntry(f"{name} has the unknown rate {unknown[0]!r}")
    rates = _rates(name, fields)
    services = _services(name, fields)
    return Price(
        **asdict(rates),
        tiers=_tiers(name, fields.get("tiers")),
        request=_amount(name, "request", fields.get("request")) or Decimal(0),
        services=services,
        full_rate=_full_rate(name, fields.get("full_rate"), services),
        gpu=_gpu(name, fields["gpu"]) if fields.get("gpu") is not None else None,
        evidence=_evidence(name, fields.get("evidence", evidence)),
        launched=_day(name, fields.get("launched")),
        source=str(fields.get("source") or ""),
    )


def price_json(price: Price) -> dict[str, object]:
    """Return a price as plain JSON values; `price_from` reads it back. What is unknown is absent.

    >>> price_json(Price(Decimal("1.25"), Decimal("10")))
    {'input': '1.25', 'output': '10', 'evidence': 'dated'}
    """
    found: dict[str, object] = _known(price.base)
    if price.tiers:
        found["tiers"] = [{"above": tier.above, **_known(tier.rates)} for tier in price.tiers]
    if price.request:
        found["request"] = format(price.request, "f")
    if price.services:
        found["services"] = {name: format(factor, "f") for name, factor in price.services.items()}
    if price.full_rate:
        found["full_rate"] = {name: list(rates) for name, rates in price.full_rate.items()}
    if price.gpu:
        gpu = price.gpu
        exact = {
            "usd_per_hour": format(gpu.usd_per_hour, "f"),
            "tokens_per_s": format(gpu.tokens_per_s, "f"),
        }
        found["gpu"] = {"type": gpu.type, "count": gpu.count, **exact, "source": gpu.source}
    found["evidence"] = price.evidence
    said = {"launched": price.launched, "source": price.source}
    return found | {name: value for name, value in said.items() if value}


def _known(rates: Rates) -> dict[str, object]:
    return {name: format(rate, "f") for name, rate in asdict(rates).items() if rate is not None}


def _table(name: str, row: object) -> Row:
    if not isinstance(row, Mapping):
        raise BadEntry(f"{name} must be a table with input and output, not {row!r}")
    return cast(Row, row)


def _rates(name: str, fields: Row) -> Rates:
    found = {rate: _amount(name, rate, fields.get(rate)) for rate in RATES}
    paid_in, paid_out = found.pop("input"), found.pop("output")
    if paid_in is None or paid_out is None:
        raise BadEntry(f"{name} has no {'input' if paid_in is None else 'output'} rate")
    return Rates(paid_in, paid_out, **found)


def _amount(name: str, field: str, value: object) -> Decimal | None:
    """Return a number from 0 up, exact: a bare float has already lost digits and is refused."""
    if value is None:
        return None
    if isinstance(value, float):
        raise BadEntry(f'{name}: {field} is a bare number; quote it, {field} = "{value}"')
    try:
        amount = decimal_of(str(value)) if isinstance(value, str | int) else Decimal("NaN")
    except ValueError:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0 or isinstance(value, bool):
        raise BadEntry(f"{name}: {field} must be a number from 0 up, not {value}")
    if amount >= LARGEST or amount != amount.quantize(SMALLEST):
        raise BadEntry(f"{name}: {field} must be below {LARGEST} and have at most 12 decimals")
    return amount


def _tiers(name: str, value: object) -> tuple[Tier, ...]:
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise BadEntry(f"{name}: tiers must be a list of tables, not {value!r}")
    tiers = tuple(_tier(f"{name}, tiers", row) for row in cast(Sequence[object], value))
    for lower, upper in pairwise(tiers):
        if upper.above <= lower.above:
            raise BadEntry(f"{name}: tiers must grow, and {upper.above} comes after {lower.above}")
    return tiers


def _tier(name: str, row: object) -> Tier:
    fields = _table(name, row)
    if unknown := sorted(set(fields) - {"above", *RATES}):
        raise BadEntry(f"{name} has the unknown rate {unknown[0]!r}")
    above = fields.get("above")
    if not isinstance(above, int) or isinstance(above, bool) or above <= 0:
        raise BadEntry(f"{name}: above must be a whole number of tokens, not {above!r}")
    return Tier(above, _rates(name, fields))


def _services(name: str, fields: Row) -> dict[Service, Decimal]:
    found: dict[Service, Decimal] = {}
    for service, value in _table(f"{name}: services", fields.get("services") or {}).items():
        if service not in SERVICES:
            known = ", ".join(SERVICES)
            raise BadEntry(f"{name} has the unknown service {service!r}; known: {known}")
        factor = _amount(name, f"services.{service}", value)
        if factor is not None:
            found[SERVICES[service]] = factor
    return found


def _full_rate(
    name: str, value: object, services: Mapping[Service, Decimal]
) -> dict[Service, tuple[str, ...]]:
    found: dict[Service, tuple[str, ...]] = {}
    for service, rates in _table(f"{name}: full_rate", value or {}).items():
        if service not in services:
            raise BadEntry(f"{name}: full_rate names {service!r}, which has no factor in services")
        listed = list(cast(Sequence[object], rates)) if isinstance(rates, list | tuple) else [rates]
        if unknown := [rate for rate in listed if rate not in RATES]:
            raise BadEntry(f"{name} has the unknown rate {unknown[0]!r} in full_rate")
        found[SERVICES[service]] = tuple(str(rate) for rate in listed)
    return found


def _gpu(name: str, value: object) -> Gpu:
    fields = _table(f"{name}: gpu", value)
    if unknown := sorted(set(fields) - set(GPU)):
        raise BadEntry(f"{name} has the unknown field {unknown[0]!r} in gpu")
    if missing := [field for field in GPU if fields.get(field) in (None, "")]:
        raise BadEntry(f"{name}: gpu has no {missing[0]}")
    count = fields["count"]
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise BadEntry(f"{name}: gpu.count must be a whole number from 1 up, not {count!r}")
    hour = _amount(name, "gpu.usd_per_hour", fields["usd_per_hour"])
    speed = _amount(name, "gpu.tokens_per_s", fields["tokens_per_s"])
    if hour is None or not speed:
        raise BadEntry(f"{name}: gpu.tokens_per_s must be a measured number above 0")
    return Gpu(str(fields["type"]), count, hour, speed, str(fields["source"]))


def _evidence(name: str, value: object) -> Evidence:
    if not isinstance(value, str) or value not in EVIDENCE:
        raise BadEntry(f"{name}: evidence must be `dated` or `carried-back`, not {value!r}")
    return EVIDENCE[value]


def _day(name: str, value: object) -> str:
    try:
        return date.fromisoformat(str(value)).isoformat() if value else ""
    except ValueError:
        raise BadEntry(
            f"{name}: launched must be a day such as 2025-08-07, not {value!r}"
        ) from None
