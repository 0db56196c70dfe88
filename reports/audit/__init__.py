"""Audit of a run: eighteen checks of its calls, costs, texts and grades, from its files alone."""

from podium.reports.audit.audit_report import (
    Audit,
    as_json,
    as_text,
    audit,
    beside_a_report,
    is_audit,
)
from podium.reports.audit.evidence import AuditFault, InvariantCheck, InvariantVerdict
from podium.reports.audit.invariants import INVARIANTS, given_anew

__all__ = [
    "INVARIANTS",
    "Audit",
    "AuditFault",
    "InvariantCheck",
    "InvariantVerdict",
    "as_json",
    "as_text",
    "audit",
    "beside_a_report",
    "given_anew",
    "is_audit",
]
