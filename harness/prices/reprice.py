"""Reprices a run: the cost of each system's logged tokens at a price book other than the run's."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

from podium.harness.errors import UserError
from podium.harness.files import refuse_unwritable
from podium.harness.ledger.call import Call, at_price, plain
from podium.harness.ledger.join import merged
from podium.harness.ledger.runs import RunFiles, gather, naming_system_run
from podium.harness.ledger.totals import add_up
from podium.harness.prices import Book, book_from_json
from podium.harness.text import columns

NAME = "reprice.json"
UNKNOWN = "—"
MICRO = Decimal("0.000001")
SHOWN = 20
HEADS = ("suite", "system", "label", "n", "tok in", "tok out", "$ then")
LEGEND = (
    "Per graded question at list price, with nothing cached, without graders. n counts the "
    "questions."
)


@dataclass(frozen=True, slots=True)
class At:
    """A system's cost per query at one price book, and the evidence of the prices used."""

    book: str
    date: str
    sha256: str
    usd: Decimal | None
    """Mean dollars per query, not rounded; None if a call has no price."""
    evidence: tuple[str, ...]
    """Kinds of evidence of the prices used, sorted: keys of `EVIDENCE`, or `not said`."""
    unpriced: tuple[str, ...]
    """Called models whose cost this book cannot give, each with the reason."""


@dataclass(frozen=True, slots=True)
class Repriced:
    """The cost of one system on one suite at two price books: the run's and another one."""

    suite: str
    system: str
    label: str
    queries: int
    tokens_in: int | None
    """Sum over all queries, cached tokens included; None if a call reports no tokens."""
    tokens_out: int | None
    then: At
    now: At

    @property
    def ratio(self) -> Decimal | None:
        """The new cost divided by the run's own; None if one is unknown or the run's is 0."""
        if self.now.usd is None or not self.then.usd:
            return None
        return self.now.usd / self.then.usd


def repriced(files: RunFiles, book: Book) -> Repriced | None:
    """Return a run's cost per query at its own book and at `book`; None if not an evaluation."""
    # None if `podium run` did not write the logs, or if the run only selected a worker.
    with naming_system_run(files):
        ledger = merged(gather(files))
        facts = ledger.logs[0].facts if ledger.logs else None
        if facts is None or facts.purpose != "eval":
            return None
        samples = [sample for log in ledger.logs for sample in log.samples]
        queries = sum(sample.newest and sample.graded for sample in samples)
        calls = [row for row in ledger.rows if row.counted and row.scope == "inference"]
        calls = [row for row in calls if row.billable != "no" or row.cache == "read"]  # not free
        tokens = add_up(calls)
        return Repriced(
            facts.suite,
            facts.system,
            facts.label,
            queries,
            tokens_in=tokens.tokens_in,
            tokens_out=tokens.tokens_out,
            then=_at(book_from_json(facts.prices), calls, queries),
            now=_at(book, calls, queries),
        )


def show_repriced(rows: Sequence[Repriced]) -> str:
    """Return a table of repriced runs, and notes on missing prices; UserError without runs."""
    if not rows:
        raise UserError(
            "No question was graded, so there is nothing to price. Finish the run first."
        )
    cells = [_cells(row) for row in rows]
    heads = (*HEADS, f"$ at {_short(rows[0].now.book)}", "ratio")
    return "\n\n".join((columns(heads, cells), LEGEND, "\n".join(_notes(rows))))


def write_repriced(rows: Sequence[Repriced], out: Path) -> Path:
    """Write repriced runs to reprice.json in `out`; UserError if that file exists."""
    path = free_place(out)
    out.mkdir(parents=True, exist_ok=True)
    records = [{**asdict(row), "ratio": row.ratio} for row in rows]
    text = json.dumps(records, indent=1, sort_keys=True, ensure_ascii=False, default=plain)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def free_place(out: Path) -> Path:
    """Return the path of reprice.json in `out`; UserError if it exists or cannot be written."""
    refuse_unwritable(out, "--out")
    if (out / NAME).exists() or (out / NAME).is_symlink():
        raise UserError(f"{out / NAME} already exists: give another --out.")
    return out / NAME


def _at(book: Book, calls: Sequence[Call], queries: int) -> At:
    there = [at_price(call, book.price(call.price_ref)) for call in calls]
    usd = add_up(there).listed
    priced = {call.price_ref for call in calls if book.price(call.price_ref)}
    return At(
        book=book.name,
        date=book.date,
        sha256=book.sha256,
        usd=usd / queries if usd is not None and queries else None,
        evidence=tuple(sorted({book.evidence(ref) for ref in priced})),
        unpriced=tuple(sorted({_why(call, book) for call in there if call.usd_list is None})),
    )


def _why(call: Call, book: Book) -> str:
    reason = "not in the book" if book.price(call.price_ref) is None else "a rate is missing"
    return f"{call.price_ref} ({'a call reported no tokens' if call.output is None else reason})"


def _cells(row: Repriced) -> tuple[str, ...]:
    return (
        row.suite,
        row.system,
        row.label,
        str(row.queries),
        _per(row.tokens_in, row.queries),
        _per(row.tokens_out, row.queries),
        _usd(row.then.usd),
        _usd(row.now.usd),
        UNKNOWN if row.ratio is None else f"{row.ratio:.3f}",
    )


EVIDENCE = {
    "dated": "as listed at that date",
    "carried-back": "of a later date, assumed to have held before",
    "built in": "podium's own, for models that run in its process",
}


def _notes(rows: Sequence[Repriced]) -> Iterator[str]:
    for name, sides in (("then", [row.then for row in rows]), ("", [row.now for row in rows])):
        for book in dict.fromkeys((side.book, side.date, side.sha256) for side in sides):
            same = [side for side in sides if (side.book, side.date, side.sha256) == book]
            evidence = sorted({kind for side in same for kind in side.evidence})
            short = name or _short(book[0])
            yield f"{short}:" if short == book[0] else f"{short}: {book[0]}"
            yield f"  date {book[1]}"
            yield f"  sha256 {book[2][:12]}"
            kinds = ", ".join(EVIDENCE.get(kind, kind) for kind in evidence)
            yield f"  prices: {kinds or 'none was used'}"
            yield from (
                f"  no price: {ref}"
                for ref in sorted({model for side in same for model in side.unpriced})
            )


def _short(name: str) -> str:
    return name if len(name) <= SHOWN else f"{name[: SHOWN - 1]}…"


def _per(total: int | None, queries: int) -> str:
    return UNKNOWN if total is None or not queries else f"{total / queries:,.1f}"


def _usd(value: Decimal | None) -> str:
    return UNKNOWN if value is None else format(value.quantize(MICRO, ROUND_HALF_EVEN), "f")
