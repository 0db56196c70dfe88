"""Whether a run's money adds up: sixteen invariants over its ledger, from files alone."""

from harness.audit.evidence import AuditFault, InvariantCheck, InvariantVerdict
from harness.audit.invariants import INVARIANTS, given_anew
from harness.audit.run import Audit, as_json, as_text, audit, is_audit

# § Whether a run's money adds up: sixteen invariants over its ledger, from files alone.
# §
# §     found = audit(Path("runs/first"))
# §     print(as_text(found))
# §
# § Reading order: `invariants.py` (what is promised), `evidence.py` (one sitting), the checks
# § by theme
# § (`tokens.py`, `sums.py`, `records.py`, `texts.py`, `grades.py`, `money.py`,
# § `plausibility.py`,
# § `integrity.py`), `table.py`
# § (the reconciliation), `run.py` (all sittings), `as_text.py` and `as_json.py`. Not here:
# § what a row
# § is (harness/ledger/), what a provider's bill says (harness/invoices/).


__all__ = [
    "INVARIANTS",
    "Audit",
    "AuditFault",
    "InvariantCheck",
    "InvariantVerdict",
    "as_json",
    "as_text",
    "audit",
    "given_anew",
    "is_audit",
]
