"""The ledger: two records of every call, the journal's and the log's, joined to one row each."""

from harness.ledger.logs import IN_FLIGHT, Phase
from harness.ledger.questions import (
    GROUPINGS,
    CallKind,
    CallSum,
    CallSums,
    QueryTotals,
    QuestionResult,
    RunFigures,
    read_figures,
)

# § The ledger: one row per attempt to call a model, from what pools wrote down and from logs.
# §
# § Two records are kept of every call, and joined afterwards. Read `row.py` first (what a row
# § says),
# § then whichever part is wanted, in this order:
# §
# § written while a run goes on
# §     asking.py            the one way to a model: allowance, intent, call, outcome
# §     journal.py           the file with a line before and a line after every call
# §     observed.py          how a call ended, from the event that Inspect has just recorded
# §     counting.py          Inspect's own hooks: when a call goes out, and an independent sum
# §     chain.py             whether a journal's lines are those that were written
# § read from Inspect's logs
# §     raw_log.py           an `.eval` file, fast
# §     events.py            the calls in one sample
# §     attempts.py          what each question got: the figures of a report; its sums are in
# § tally.py
# § joined to rows, one sitting (one task's logs and journals) at a time
# §     sitting_files.py     which files belong together
# §     gather.py, logged.py what they say
# §     merge.py             which line and which event are one call, and so the rows
# §     writing.py           the fields of a row
# §     billing.py           its dollars
# § used
# §     queries.py           rows added up by question; query_row.py, answered.py, plans.py
# §     details.py           one question in full; detail_text.py prints it
# §     export.py            files for others: tables.py, columns.py, formats.py,
# § schema_page.py
# §     otel.py              a row in OpenTelemetry's words
# §     sql.py               SELECT over an export, or one made on_the_fly.py
# §     spending.py          what a run has spent, for its limit; spent.py: what only logs
# § know of it
# §     paid.py              what left a purse, for the report
# §
# § Not here: prices (harness/prices/), the limit itself (harness/budget.py), whether the two
# § records
# § agree (harness/audit/).


__all__ = [
    "GROUPINGS",
    "IN_FLIGHT",
    "CallKind",
    "CallSum",
    "CallSums",
    "Phase",
    "QueryTotals",
    "QuestionResult",
    "RunFigures",
    "read_figures",
]


# § What a run's directory held when it ended, and whether it still does.
# §
# § `manifest.py` writes down files and one Merkle root over them (`merkle.py`,
# § `inventory.py`),
# § `tampering.py` finds what was changed since, `signing.py` says who vouches for it. That a
# § journal is
# § an unbroken chain is harness/ledger/journal.py.
