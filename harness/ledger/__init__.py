"""The ledger: one row per attempt to call a model, from what pools wrote down and from logs.

Read `row.py` first (what a row says), then `journal.py` (what is written down before and after
every call), `raw_log.py`, `events.py` and `attempts.py` (what Inspect's logs say of the same
calls). `merge.py` joins both into rows; `queries.py` adds them up by question, `export.py` and
`sql.py` hand them to others. Prices are harness/prices/pricing.py; whether the two records agree is
harness/audit/.
"""

from harness.ledger.attempts import GROUPINGS, Attempt, Figures, read_calls, read_figures
from harness.ledger.events import IN_FLIGHT, CallEvent, Phase, calls_in
from harness.ledger.spent import spent_in
from harness.ledger.tally import Kind, QueryTotals, Tallies, Tally

__all__ = [
    "GROUPINGS",
    "IN_FLIGHT",
    "Attempt",
    "CallEvent",
    "Figures",
    "Kind",
    "Phase",
    "QueryTotals",
    "Tallies",
    "Tally",
    "calls_in",
    "read_calls",
    "read_figures",
    "spent_in",
]
