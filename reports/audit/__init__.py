"""Whether a run's money adds up: eighteen invariants over its ledger, from files alone."""

from podium.reports.audit.evidence import AuditFault, InvariantCheck, InvariantVerdict
from podium.reports.audit.invariants import INVARIANTS, given_anew
from podium.reports.audit.run import Audit, as_json, as_text, audit, is_audit

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
