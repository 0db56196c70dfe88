"""Whether a run's money adds up: sixteen invariants over its ledger, from files alone.

    found = audit(Path("runs/first"))
    print(as_text(found))

Reading order: `invariants.py` (what is promised), `evidence.py` (one sitting), the checks by theme
(`tokens.py`, `sums.py`, `records.py`, `texts.py`, `grades.py`, `money.py`, `plausibility.py`,
`integrity.py`), `table.py`
(the reconciliation), `run.py` (all sittings), `as_text.py` and `as_json.py`. Not here: what a row
is (harness/ledger/), what a provider's bill says (harness/invoices/).
"""

from harness.audit.as_json import as_json, is_audit
from harness.audit.as_text import as_text
from harness.audit.grades import given_anew
from harness.audit.invariants import INVARIANTS
from harness.audit.result import Checked, Fault, Verdict
from harness.audit.run import Audit, audit

__all__ = [
    "INVARIANTS",
    "Audit",
    "Checked",
    "Fault",
    "Verdict",
    "as_json",
    "as_text",
    "audit",
    "given_anew",
    "is_audit",
]
