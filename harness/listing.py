"""What there is: suites and workers as plain text for the terminal (systems: manifest_text.py)."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

from harness.api_keys import shown
from harness.errors import UserError
from harness.pool_file import PoolSpec, WorkerSpec
from harness.prices import Book
from harness.suite import Card, Prompted, Suite, prompt_of, usual_epochs

WIDTH = 100
_HANGING: Mapping[str, Any] = {
    "subsequent_indent": " " * 15,
    "break_long_words": False,
    "break_on_hyphens": False,
}

DESCRIBED = (
    "Also by name: livecodebench-v1 to -v6, livecodebench-train, and NAME@START..END for a window "
    "of contest dates."
)


def show_suites(
    suites: Mapping[str, Suite[Any]], name: str | None, sources: Sequence[str] = ()
) -> str:
    """Return the list of suites, or the card of one with what its data is pinned to.

    UserError for an unknown name.
    """
    if name is None:
        rows = [
            (
                suite.name,
                suite.version,
                "/".join(suite.splits),
                "yes" if suite.needs_box else "no",
                suite.dates,
            )
            for suite in suites.values()
        ]
        table = columns(("suite", "version", "splits", "box", "dates"), rows)
        return f"{table}\n\n{DESCRIBED}"
    suite = _named(suites, name, "suite")
    facts = [
        *_of_the_card(suite.card),
        *_of_the_suite(suite),
        *(("source", one) for one in sources),
    ]
    lines = (fill(value, WIDTH, initial_indent=f"  {key:<12} ", **_HANGING) for key, value in facts)
    return "\n".join((name, *lines, "", fill(suite.card.about, WIDTH)))


def _of_the_card(card: Card) -> list[tuple[str, str]]:
    sizes = ", ".join(f"{split} {size}" for split, size in card.sizes.items())
    return [
        ("title", card.title),
        ("paper", card.paper),
        ("questions", sizes or "known when they are loaded"),
        ("licence", card.licence),
        ("people", card.human),
    ]


def _of_the_suite(suite: Suite[Any]) -> list[tuple[str, str]]:
    prompts = suite.prompts if isinstance(suite, Prompted) else (prompt_of(suite),)
    return [
        ("version", suite.version),
        *(("", change) for change in suite.card.changes),
        ("data", suite.data_revision),
        ("dates", suite.dates),
        ("splits", ", ".join(suite.splits)),
        ("prompts", ", ".join(prompts)),
        ("epochs", str(usual_epochs(suite))),
        ("box", f"needed, with image {suite.image}" if suite.needs_box else "not needed"),
        (
            "publishable",
            "yes" if suite.publishable else "no: its text stays in no report or export",
        ),
    ]


def show_workers(spec: PoolSpec, book: Book) -> str:
    """Return a pool's workers with what identifies and what prices them."""
    rows = [
        (slot.name, slot.model, _price(slot, book), slot.knowledge_cutoff, _settings(slot))
        for slot in spec.slots
    ]
    heads = ("worker", "model", "$/Mtok in, out", "knowledge cutoff", "settings")
    title = f"{spec.name} ({spec.label}), prices: {book.name} of {book.date}"
    cards = [f"{slot.name}: {' '.join(slot.card.split())}" for slot in spec.slots if slot.card]
    return "\n".join((title, "", columns(heads, rows), "", *cards))


def _price(slot: WorkerSpec, book: Book) -> str:
    price = book.price(slot.price_ref)
    if price is None:
        return "unpriced"
    said = {"carried-back": " (carried back)", "built in": " (built in)"}
    return f"{price.input}, {price.output}{said.get(book.evidence(slot.price_ref), '')}"


def _settings(slot: WorkerSpec) -> str:
    settings = shown({**slot.config.model_dump(exclude_none=True), **slot.args})
    return ", ".join(f"{key}={value}" for key, value in settings.items()) or "provider's defaults"


def _named(known: Mapping[str, Any], name: str, noun: str) -> Any:
    if name not in known:
        raise UserError(f"There is no {noun} {name!r}; known {noun}s: {', '.join(sorted(known))}.")
    return known[name]


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows as aligned columns; the last one is not padded."""
    widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (heads, *rows)
    ]
    return "\n".join(lines)
