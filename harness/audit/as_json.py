"""An audit as JSON that has one form: sorted keys, money as strings, no time and no path of now."""

from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from harness.audit.evidence import NAMES, Tokens
from harness.audit.run import Audit
from harness.audit.table import Dollars, Table
from harness.ledger.row import canonical, plain
from harness.parsing import read_json

SCHEMA = "podium-audit-1"


def as_json(audit: Audit) -> bytes:
    """Return the whole audit, every fault included; the same files give the same bytes."""
    data = {
        "schema": SCHEMA,
        "strict": audit.strict,
        "ok": audit.ok,
        "reconciliation": _table(audit.table),
        "invariants": [asdict(verdict) for verdict in audit.verdicts],
    }
    return canonical(data) + b"\n"


def is_audit(path: Path) -> bool:
    """Say whether a file is what an audit wrote, and may be replaced by the next one."""
    try:
        found: object = read_json(path)
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and cast(dict[str, object], found).get("schema") == SCHEMA


def _table(table: Table) -> dict[str, Any]:
    return {
        "counts": dict(table.counts),
        "tokens": {name: _tokens(tokens) for name, tokens in table.tokens.items()},
        "ledger_less": {
            name: {cause: _tokens(tokens) for cause, tokens in causes.items()}
            for name, causes in table.causes.items()
        },
        "usd": {name: _dollars(dollars) for name, dollars in table.dollars.items()},
    }


def _tokens(tokens: Tokens) -> dict[str, int]:
    return {name.replace(" ", "_"): count for name, count in zip(NAMES, tokens, strict=True)}


def _dollars(dollars: Dollars) -> dict[str, Any]:
    found = {name: plain(value) for name, value in asdict(dollars).items()}
    return {**found, "total": plain(dollars.total)}
