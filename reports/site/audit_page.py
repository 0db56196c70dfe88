"""The audit page: charts of calls and dollars, invariants with faults, differences of records.

Every figure is the audit's own, as in `podium audit --json`; the bars only display figures.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from podium.harness.errors import UserError
from podium.harness.ledger.call import ZERO, plain
from podium.harness.ledger.join import rows_of
from podium.harness.ledger.manifest import FILE, read_manifest
from podium.harness.ledger.runs import RunFiles, system_runs_below
from podium.harness.ledger.totals import CallSum
from podium.harness.text import pluralise
from podium.reports.audit import Audit, AuditFault
from podium.reports.audit.audit_report import (
    BILLING,
    COUNTS,
    KEPT,
    OPEN,
    RECORD_TITLES,
    REFUSED,
    Reconciled,
    dollar_figures,
    runs_of,
    system_run_name,
)
from podium.reports.audit.evidence import NAMES, NO_TOKENS, InvariantVerdict, minus
from podium.reports.audit.reconcile import (
    CELLS,
    HEADING,
    Reconciliation,
    reconciliation_notes,
    reconciliation_table,
)
from podium.reports.render import usd_sum
from podium.reports.site.index import SiteBlock
from podium.reports.site.pages import query_address

MOST = 200
"""Maximum faults per invariant on a page; the audit's JSON has all of them."""
WITHHELD = "not shown, because texts of this suite may not be published; `podium audit` shows it"
ONE = Decimal(1)
ORDER = ("fail", "weak", "pass", "not applicable")
SAMPLE = re.compile(r"sample (.+) epoch (\d+)", re.DOTALL)
BarKind = Literal["whole", "more", "less", "range"]
Steps = list[tuple[str, str, BarKind, Decimal]]
"""Steps of a waterfall chart: label, formatted amount, kind of bar, and amount."""


@dataclass(frozen=True, slots=True)
class WaterfallBar:
    """A line of a waterfall chart: label, formatted amount, and a bar of `width` from `start`."""

    label: str
    figure: str
    kind: BarKind
    start: Decimal
    width: Decimal


def audit_context(
    audits: Mapping[Path, Audit],
    blocks: Sequence[SiteBlock],
    bills: Sequence[Reconciliation] = (),
    *,
    linked: bool = True,
) -> dict[str, Any]:
    """Return the template variables of audit.html for audited directories, failing ones first.

    `bills`: invoices, each compared with its ledger. `linked`: whether to link to query pages.
    """
    pairs = sorted(audits.items(), key=lambda pair: pair[1].ok)
    books = {
        (str(run.facts.prices["name"]), str(run.facts.prices["sha256"]))
        for block in blocks
        for _, run in block.pairs
    }
    audit_facts = [_shown(folder, audit, blocks, linked=linked) for folder, audit in pairs]
    invoices = [_bill(bill) for bill in bills]
    dollars = [bars for facts in audit_facts for *_, bars in facts["dollars"]]
    calls = _longest([facts["calls"] for facts in audit_facts])
    usd = _longest([*dollars, *(invoice["bars"] for invoice in invoices)])
    return {
        "audits": audit_facts,
        "bills": invoices,
        "books": sorted(books),
        "scales": {"calls": (calls, f"{calls:,}"), "dollars": (usd, plain(usd))},
    }


def _longest(charts: Sequence[Sequence[WaterfallBar]]) -> Decimal:
    """Return the largest value of waterfall charts that share a scale; 1 if all are empty."""
    return max((bar.start + bar.width for bars in charts for bar in bars), default=ZERO) or ONE


def _shown(
    folder: Path, audit: Audit, blocks: Sequence[SiteBlock], *, linked: bool
) -> dict[str, Any]:
    table, system_runs = audit.table, system_runs_below(folder)
    faults = _ShownFaults(system_runs, blocks, linked=linked)
    return {
        "name": folder.resolve().name,
        "ok": audit.ok,
        "said": verdict_sentence(audit.verdicts),
        "counts": [(f"{table.counts[name]:,}", meaning) for name, meaning in COUNTS],
        "calls": call_bars(table),
        "dollars": [
            (name, dollars.unpriced, dollar_bars(dollars, table.billing[name]))
            for name, dollars in sorted(table.dollars.items())
        ],
        "kinds": [name.replace("_", " ") for name in NAMES],
        "tokens": list(token_lines(table)),
        "verdicts": [_verdict(verdict, faults) for verdict in audit.verdicts],
        "roots": [(run.name, root or "none") for run, root in manifest_roots(folder, system_runs)],
    }


def verdict_sentence(verdicts: Sequence[InvariantVerdict]) -> str:
    """Return one sentence that counts invariants by status and names those that fail."""
    by_status = {
        status: [f"{item.invariant} {item.title}" for item in verdicts if item.status == status]
        for status in ORDER
    }
    failed, *remaining = by_status.values()
    weak, passing, absent = map(len, remaining)
    summary = ", ".join(
        f"{number or 'none'} {singular if number < 2 else plural}"
        for number, singular, plural in (
            (passing, "holds", "hold"),
            (weak, "is weak", "are weak"),
            (absent, "does not apply", "do not apply"),
        )
    )
    if not failed:
        return f"No invariant fails: {summary}."
    number = f"{len(failed)} of {pluralise(len(verdicts), 'invariant')}"
    return f"{number} {'fails' if len(failed) == 1 else 'fail'}: {', '.join(failed)}; {summary}."


def call_bars(table: Reconciled) -> list[WaterfallBar]:
    """Return the waterfall chart from calls in the journal to calls billed."""
    counts, ways = table.counts, [item for bill in table.billing.values() for item in bill.items()]
    by_way = {way: sum(total.calls for name, total in ways if name == way) for way in BILLING}
    intents, escaped, rows = counts["intents"], counts["without journal"], counts["attempts"]
    steps: list[tuple[str, BarKind, int]] = [
        ("calls recorded before they were sent", "whole", intents),
        ("attempts after a failed attempt", "more", rows - escaped - intents),
        ("attempts that no journal has", "more", escaped),
        ("attempts in the ledger, a row each", "whole", rows),
        ("refused by the provider: not billed", "less", by_way[REFUSED]),
        ("without a known end: billed within a range", "less", by_way[OPEN]),
        ("read from the local cache: paid 0", "less", by_way[KEPT]),
        ("calls billed", "whole", rows - by_way[REFUSED] - by_way[OPEN] - by_way[KEPT]),
    ]
    visible = (step for step in steps if step[1] == "whole" or step[2])
    return _bars([(label, f"{value:,}", kind, Decimal(value)) for label, kind, value in visible])


def dollar_bars(dollars: CallSum, ways: Mapping[str, CallSum]) -> list[WaterfallBar]:
    """Return the waterfall chart from dollars at list price to dollars billed and their maximum.

    Empty if no call has a price.
    """
    figures = dollar_figures(dollars)
    if dollars.paid.unpriced == dollars.calls:
        return []
    steps: Steps = [
        ("at list price, as if nothing had been cached", figures["listed"] or "unknown", "whole",
         dollars.usd_list)
    ]  # fmt: skip
    for way in BILLING:
        total = ways.get(way, CallSum())
        if saved := total.usd_list - total.usd:
            label = f"{way}: {pluralise(total.calls, 'attempt')}"
            steps.append((label, plain(-saved), "less" if saved > 0 else "more", abs(saved)))
    label = "at the price book" + (", at least" if figures["total"] is None else "")
    steps.append((label, figures["low"], "whole", dollars.usd))
    if dollars.unknown:
        label = f"at most, because {pluralise(dollars.unknown, 'attempt')} may have been billed"
        bounded = dollars.high - dollars.usd if dollars.paid.high is not None else ZERO
        steps.append((label, figures["high"] or "nothing bounds it", "range", bounded))
    return _bars(steps)


def _bill(reconciliation: Reconciliation) -> dict[str, Any]:
    """Return template variables of an invoice comparison, with a row per time bucket and model."""
    return {
        "said": HEADING.format(reconciliation),
        "cells": CELLS,
        "ok": reconciliation.ok,
        "bars": _bill_bars(reconciliation),
        "rows": reconciliation_table(reconciliation),
        "notes": reconciliation_notes(reconciliation),
    }


def _bill_bars(reconciliation: Reconciliation) -> list[WaterfallBar]:
    """Return the waterfall chart from ledger to invoice dollars; empty if a sum is unknown."""
    ours = usd_sum([row.ledger.usd for row in reconciliation.rows])
    theirs = usd_sum([row.invoice.usd for row in reconciliation.rows])
    if ours is None or theirs is None:
        return []
    kind: BarKind = "more" if theirs > ours else "less"
    steps: Steps = [("in the ledger, in the invoice's buckets", plain(ours), "whole", ours)]
    if ours != theirs:
        label = "on the invoice alone" if theirs > ours else "in the ledger alone"
        steps.append((label, plain(theirs - ours), kind, abs(theirs - ours)))
    return _bars([*steps, ("on the invoice", plain(theirs), "whole", theirs)])


def _bars(steps: Steps) -> list[WaterfallBar]:
    """Return a bar per step: totals start at 0, other bars where the previous bar ends."""
    end, placed = ZERO, list[WaterfallBar]()
    for label, figure, kind, value in steps:
        start = {"whole": ZERO, "less": end - value}.get(kind, end)
        end = {"whole": value, "less": start}.get(kind, end + value)
        placed.append(WaterfallBar(label, figure, kind, start, value))
    return placed


def token_lines(table: Reconciled) -> Iterator[tuple[str, str, list[str]]]:
    """Yield lines (kind, title, token counts): each record of calls, then why it lacks tokens.

    `kind` is `record` or `cause`; a cause counts tokens that the ledger has and the record lacks.
    """
    ledger = table.tokens.get("ledger", NO_TOKENS)
    for name, title in RECORD_TITLES.items():
        tokens = table.tokens.get(name, NO_TOKENS)
        same = name != "ledger" and minus(ledger, tokens) == NO_TOKENS
        yield "record", f"{title}: equal to the ledger" if same else title, _counted(tokens)
        for cause, shortfall in sorted(table.causes.get(name, {}).items()):
            yield "cause", cause, _counted(shortfall)


def _counted(tokens: Sequence[int]) -> list[str]:
    return [f"{count:,}" for count in tokens]


def _verdict(verdict: InvariantVerdict, faults: "_ShownFaults") -> dict[str, Any]:
    """Return an invariant's status, reasons and faults as template variables."""
    return {
        "id": verdict.invariant,
        "title": verdict.title,
        "meaning": verdict.meaning,
        "status": verdict.status,
        "checked": verdict.checked,
        # Reasons about a log quote its texts.
        "reasons": [
            (WITHHELD if faults.private and reason.startswith("log ") else reason, f"{often:,}")
            for reason, often in verdict.reasons
        ],
        "faults": [
            (fault.task, fault.where, faults.said(fault), faults.address(fault))
            for fault in verdict.faults[:MOST]
        ],
        "more": len(verdict.faults[MOST:]),
    }


class _ShownFaults:
    """The faults of one audit: their texts, if the suite may be published, and links to queries."""

    def __init__(
        self, system_runs: Sequence[RunFiles], blocks: Sequence[SiteBlock], *, linked: bool
    ) -> None:
        entries = [(block, row, run) for block in blocks for row, run in block.pairs]
        self.private = {run.facts.suite for block, _, run in entries if not block.shown}
        self.open = {run.facts.suite for *_, run in entries} - self.private
        self.files = {system_run_name(files): files for files in system_runs}
        self.rows = {
            path.resolve(): (block, row)
            for block, row, run in entries
            if linked
            for path in run.paths
        }
        self.questions = {block.name: {*block.questions} for block in blocks}
        self.calls: dict[str, dict[str, tuple[str, int]]] = {}

    def said(self, fault: AuditFault) -> str:
        """Return a fault's text, or the notice `WITHHELD` if it may quote a private suite."""
        files = self.files.get(fault.task)
        publishable = files is not None and files.task.partition(" ")[0] in self.open
        return WITHHELD if self.private and not publishable else fault.said

    def address(self, fault: AuditFault) -> str:
        """Return the link to the query that a fault is about; empty if there is none."""
        files = self.files.get(fault.task)
        candidates = (self.rows.get(path.resolve()) for path in files.logs) if files else ()
        block, row = next(filter(None, candidates), (None, None))
        if files is None or block is None or row is None:
            return ""
        question, epoch = self._asked(fault, files)
        exists = question in self.questions[block.name]
        return query_address(block.name, question, epoch, row.system) if exists else ""

    def _asked(self, fault: AuditFault, files: RunFiles) -> tuple[str, int]:
        """Return the question and epoch of a fault's sample or call; `("", 0)` if unknown."""
        if match := SAMPLE.fullmatch(fault.where):
            return match[1], int(match[2])
        if fault.task not in self.calls:  # read only if there is a fault
            places = {f"call {row.call}": (row.question, row.epoch) for row in rows_of(files)}
            self.calls[fault.task] = places
        return self.calls[fault.task].get(fault.where, ("", 0))


def manifest_roots(folder: Path, system_runs: Sequence[RunFiles]) -> Iterator[tuple[Path, str]]:
    """Yield each run directory with its manifest's root hash, "" without one, a note if damaged."""
    for run in runs_of(folder, system_runs):
        try:
            yield run, read_manifest(run / FILE).root if (run / FILE).is_file() else ""
        except UserError:
            yield run, "none that can be read"
