"""The ledger: one row per attempt to call a model, from what pools wrote down and from logs.

Read `row.py` first (what a row says), then `journal.py` (what is written down before and after
every call), `raw_log.py` and `attempts.py` (what Inspect's logs say of the same calls). Prices are
harness/pricing.py; whether the two records agree is harness/audit/.
"""

from harness.ledger.attempts import (
    GROUPINGS,
    IN_FLIGHT,
    Attempt,
    Phase,
    attempts_of,
    distinct,
    lost_calls,
    model_events,
    read_calls,
    spent_in,
)

__all__ = [
    "GROUPINGS",
    "IN_FLIGHT",
    "Attempt",
    "Phase",
    "attempts_of",
    "distinct",
    "lost_calls",
    "model_events",
    "read_calls",
    "spent_in",
]
