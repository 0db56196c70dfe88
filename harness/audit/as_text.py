"""An audit as lines for a terminal: the reconciliation, then the verdicts, then the faults."""

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from harness.audit.evidence import NOTHING, Tokens, minus
from harness.audit.result import Verdict
from harness.audit.run import Audit
from harness.audit.table import UNLABELLED, Dollars, Table
from harness.ledger.row import plain
from harness.plural import counted

SHOWN = 10
"""Faults of one invariant that are printed; the JSON has all of them."""

WIDTH = 120
"""Columns of a line; a name without a space, of a file say, stays whole."""
AS_IT_IS: Mapping[str, Any] = {"break_long_words": False, "break_on_hyphens": False}

COUNTS = (
    ("intents", "calls written down before they went out (journals)"),
    ("outcomes", "calls written down when they had ended (journals)"),
    ("in flight", "calls in flight when their process ended"),
    ("untold", "calls that ended, and how was not written down (the log may know)"),
    ("attempts", "attempts in the ledger, one row each"),
    ("retries", "of them repeated after one that failed"),
    ("failed", "of them failed"),
    ("refused", "of them refused by the provider: not billed"),
    ("unknown", "of them without an answer or a count that can be: billed within a range"),
    ("cached", "of them read from the local cache: paid 0"),
    ("events", "model events in logs"),
    ("without event", "attempts that no log has"),
    ("without journal", "attempts that no journal has"),
)
PAID = (
    "US dollars. Only live dollars were paid; recorded and rehearsal ones are what it would cost.\n"
    "at least, at most: bounds where nobody knows whether an attempt was billed. at list price:\n"
    "as if nothing had been cached. Cached tokens, read or written, are not in input; reasoning\n"
    "is in output."
)
RECORDS = {
    "ledger": "ledger",
    "samples": "Inspect, newest samples",
    "runs": "Inspect, runs",
    "hooks": "Inspect, hooks",
}


def as_text(audit: Audit) -> str:
    """Return the whole audit."""
    return "\n".join((*_reconciliation(audit.table), "", *_verdicts(audit), *_faults(audit)))


def _reconciliation(table: Table) -> Iterator[str]:
    counts = table.counts
    yield (
        f"RECONCILIATION of {counted(counts['sittings'], 'sitting')}: "
        f"{counted(counts['logs'], 'log')}, {counted(counts['journals'], 'journal')}"
    )
    if counts["run directories"] > 1:
        yield f"put together from {counts['run directories']:,} run directories"
    yield from (f"{counts[name]:>14,}  {meaning}" for name, meaning in COUNTS)
    yield ""
    yield f"{'tokens':<42}{'input':>15}{'cached':>13}{'output':>13}{'reasoning':>13}"
    ledger = table.tokens.get("ledger", NOTHING)
    for name, title in RECORDS.items():
        tokens = table.tokens.get(name, NOTHING)
        yield _tokens_line(title, tokens)
        for cause, less in sorted(table.causes.get(name, {}).items()):
            yield _tokens_line(f"  + {cause}", less)
        if name != "ledger" and minus(ledger, tokens) == NOTHING:
            yield "  equal to the ledger"
    yield ""
    yield f"{'dollars':<26}{'at the book':>18}{'at least':>18}{'at most':>18}{'at list price':>18}"
    for name, dollars in sorted(table.dollars.items()):
        yield from _dollars_lines(name, dollars)
    yield PAID
    if any(name.startswith(UNLABELLED) for name in table.dollars):
        yield "unlabelled: podium did not run it, and nobody wrote down whether it was paid."


def _tokens_line(title: str, tokens: Tokens) -> str:
    cached = tokens[2] + tokens[3]
    line = f"{title:<42}{tokens[0]:>15,}{cached:>13,}{tokens[1]:>13,}{tokens[4]:>13,}"
    return line if len(title) <= 42 else f"{title}\n{line.removeprefix(title):>96}"


def _dollars_lines(name: str, dollars: Dollars) -> Iterator[str]:
    parts = (dollars.total, dollars.low, dollars.high, dollars.listed)
    shown = ("unknown" if part is None else plain(part) for part in parts)
    yield f"{name:<26}" + "".join(f"{part:>18}" for part in shown)
    if dollars.unpriced:
        yield f"  {dollars.unpriced:,} calls have no price; the others cost {plain(dollars.priced)}"
    if dollars.unknown:
        yield f"  {dollars.unknown:,} attempts may have been billed"


def _verdicts(audit: Audit) -> Iterator[str]:
    yield "INVARIANTS" + (" (strict)" if audit.strict else "")
    for verdict in audit.verdicts:
        said = f"{verdict.status:<15}{verdict.invariant:<4} {verdict.title}: {verdict.meaning}"
        yield from textwrap.wrap(said, WIDTH, subsequent_indent=" " * 20, **AS_IT_IS)
        for reason, often in verdict.reasons:
            said = f"{'':<20}{reason} ({often:,})"
            yield from textwrap.wrap(said, WIDTH, subsequent_indent=" " * 22, **AS_IT_IS)
    yield ""
    yield _summary(audit)


def _summary(audit: Audit) -> str:
    """Return the verdict in a line: what fails, and what a strict audit would fail on."""
    failed = sum(verdict.status == "fail" for verdict in audit.verdicts)
    weak = sum(verdict.status == "weak" for verdict in audit.verdicts)
    said = "No invariant fails" if audit.ok else f"{failed} of {len(audit.verdicts)} fail"
    if not weak:
        return f"{said}."
    them = "is weak: `--strict` fails on it" if weak == 1 else "are weak: `--strict` fails on them"
    return f"{said}; {weak} {them}."


def _faults(audit: Audit) -> Iterator[str]:
    for verdict in audit.verdicts:
        if verdict.faults:
            yield ""
            yield f"{verdict.invariant} {verdict.title}: {len(verdict.faults):,} faults"
            yield from _some(verdict)


def _some(verdict: Verdict) -> Iterator[str]:
    for fault in verdict.faults[:SHOWN]:
        said = f"  {fault.task}, {fault.where}: {fault.said}"
        yield from textwrap.wrap(said, WIDTH, subsequent_indent="    ", **AS_IT_IS)
    if len(verdict.faults) > SHOWN:
        yield f"  and {len(verdict.faults) - SHOWN:,} more; --json FILE has all of them"
