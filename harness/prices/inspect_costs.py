"""A price book as Inspect's `--model-cost-config` takes it: four flat rates a model.

Inspect knows no tier, no fee of a request and no unknown rate, and refuses models that its own
database lacks: what cannot be said so is left out, or told beside the file.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from inspect_ai.model import ModelCost, get_model_info

from podium.harness.errors import UserError
from podium.harness.prices.book import Book
from podium.harness.prices.cost import Price

LOADED = ("hf", "nnterp", "sglang", "transformer_lens", "vllm")
"""Providers that Inspect would load, or start a server for, only to look up a name."""
SUFFIXES = (".json", ".yaml", ".yml")  # by which Inspect tells a file; JSON is YAML, too


@dataclass(frozen=True, slots=True)
class InspectCosts:
    """What Inspect can be told of a book."""

    costs: dict[str, ModelCost]
    notes: tuple[str, ...]
    """A sentence for each price that is flatter than the book's."""
    left_out: dict[str, str]
    """Why, by model."""


def inspect_costs(book: Book) -> InspectCosts:
    """Return a book's prices as Inspect takes them; UserError where none can be told."""
    left_out = {ref: why for ref, price in book.prices.items() if (why := _why_not(ref, price))}
    told = {ref: price for ref, price in sorted(book.prices.items()) if ref not in left_out}
    if not told:
        raise UserError(
            f"Inspect knows none of the {len(book.prices)} models of price book {book.name!r}: "
            "take a book of list prices (`podium prices list`)."
        )
    notes = tuple(f"{ref}: {said}." for ref, price in told.items() for said in _flattened(price))
    return InspectCosts({ref: _cost(price) for ref, price in told.items()}, notes, left_out)


def write_inspect_costs(found: InspectCosts, out: Path) -> None:
    """Write the file; UserError for another suffix, and where one is already."""
    if out.suffix not in SUFFIXES:
        raise UserError(f"Inspect reads {', '.join(SUFFIXES)}: give {out} one of these endings.")
    costs = {ref: cost.model_dump() for ref, cost in found.costs.items()}
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(json.dumps(costs, indent=2) + "\n")
    except FileExistsError:
        raise UserError(f"{out} is there already: give another --inspect, or move it.") from None


def _why_not(ref: str, price: Price) -> str:
    """Return why Inspect cannot be told a price; empty where it can."""
    if price.request:
        return "each request has a fee, and Inspect knows rates alone"
    if price.reasoning not in (None, price.output):
        return "its reasoning has a rate of its own, and Inspect counts it as output"
    known = not ref.startswith(LOADED) and get_model_info(ref) is not None
    return "" if known else "Inspect's model database lacks it, and refuses a price for it"


def _cost(price: Price) -> ModelCost:
    """Return four rates; what is cached at no rate of its own is input like any other."""
    rates = (price.input, price.output, price.cache_write, price.cache_read)
    paid_in, out, write, read = (float(price.input if one is None else one) for one in rates)
    return ModelCost(input=paid_in, output=out, input_cache_write=write, input_cache_read=read)


def _flattened(price: Price) -> Iterator[str]:
    if price.tiers:
        above = price.tiers[0].above
        yield f"requests of more than {above:,} tokens cost more, which Inspect does not know"
    named = {"read": price.cache_read, "written": price.cache_write}
    if lacking := " and ".join(name for name, rate in named.items() if rate is None):
        yield f"no rate is known for cached tokens {lacking}, which cost as input does"
