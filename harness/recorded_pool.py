"""Write the pool file that replays a cassette, with prices and settings from the recorded runs.

A recorded worker keeps the identity of the live one: its card, generation config, price and
knowledge cutoff. Where the logs do not say (a plain Inspect run), it has no price.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.cassette import SourceLabel
from harness.errors import UserError
from harness.prices import BOOKS, book_from_json, read_book
from harness.prices.writing import book_text, toml
from harness.records import CONDUCTOR, GRADER

NO_PRICES = "none"
"""The book without a price (harness/prices/none.toml)."""


def recorded_pool(
    cassette: Path,
    models: Mapping[str, str],
    facts: Sequence[Mapping[str, Any]],
    source_label: SourceLabel,
) -> dict[Path, str]:
    """Return the files to write beside a cassette: the pool, and its price book if not shipped.

    `models` maps each recorded worker to the model that answered; `facts` is what podium wrote into
    the header of each log. Files are named as they stand beside the pool, to be moved together.
    Rehearsal replies stay `rehearsal`: a recording does not make them real.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", cassette.stem):
        raise UserError(
            f"{cassette.stem!r} cannot name a pool: use letters, digits, `.`, `_`, `-`."
        )
    workers: dict[str, Mapping[str, Any]] = {}
    for fact in facts:
        workers.update(fact.get("workers", {}))
    name, book = _book(cassette, [fact["prices"] for fact in facts if fact.get("prices")])
    lines = [
        f"# Replays {cassette.name}: podium run --pool {cassette.with_suffix('.toml').name}",
        f"label = {toml('rehearsal' if source_label == 'rehearsal' else 'recorded')}",
        f"prices = {toml(name)}",
    ]
    for worker, model in sorted(models.items(), key=lambda item: item[0] == CONDUCTOR):
        if worker != GRADER:
            lines += ["", *_slot(worker, model, workers.get(worker, {}), cassette)]
    return {cassette.with_suffix(".toml"): "\n".join(lines) + "\n", **book}


def _slot(worker: str, model: str, fact: Mapping[str, Any], cassette: Path) -> list[str]:
    fields: dict[str, Any] = {
        "name": worker,
        "model": f"recorded/{worker}",
        "price": fact.get("price") or model,
        "card": fact.get("card") or "",
        "knowledge_cutoff": fact.get("knowledge_cutoff") or "unknown",
        "args": {"cassette": cassette.name},
    }
    if fact.get("config"):
        fields["config"] = fact["config"]
    head = "[conductor]" if worker == CONDUCTOR else "[[workers]]"
    return [f"# recorded from {model}", head, *(f"{key} = {toml(fields[key])}" for key in fields)]


def _book(cassette: Path, embedded: Sequence[Mapping[str, Any]]) -> tuple[str, dict[Path, str]]:
    """Return the name of the logs' price book, and its text where it has to be written."""
    if not embedded:
        return NO_PRICES, {}
    if len({str(data["sha256"]) for data in embedded}) > 1:
        raise UserError("The logs were written with different price books: record them separately.")
    book = book_from_json(embedded[0])
    if (BOOKS / f"{book.name}.toml").is_file() and read_book(book.name).sha256 == book.sha256:
        return book.name, {}
    path = cassette.with_name(f"{cassette.stem}.prices.toml")
    return path.name, {path: book_text(book)}
