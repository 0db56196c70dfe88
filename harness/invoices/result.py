"""What a reconciliation is asked for and what it says: plain records, no arithmetic.

`Reconciliation.faults` is what invariant I10 of the audit fails on; everything else is shown.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any, Literal

from harness.ledger.row import plain

Kind = Literal[
    "difference",
    "not in the ledger",
    "not in the invoice",
    "request differs",
    "repeated request id",
    "unmatched model",
    "nothing compared",
]


@dataclass(frozen=True, slots=True)
class Options:
    """Whose traffic is compared, and how closely."""

    project: str | None = None
    """Only lines of this project or workspace; others are foreign traffic."""
    key: str | None = None
    """Only lines of this API key, by the id or name that the export gives."""
    whole_account: bool = False
    """True when the account did nothing but this run, and the export names no project or key."""
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    """Model of the ledger -> model of the invoice, where their names do not say it."""
    tokens: int = 0
    """Largest difference that is none, per bucket, model and kind of token."""
    usd: Decimal = Decimal(0)
    """The same in dollars, beside the rounding of the invoice's own amounts."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """One side of a comparison; None where it does not say."""

    requests: int | None = None
    input: int | None = None
    """The prompt, cached or not."""
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Reconciled:
    """One bucket and model, both sides."""

    bucket: str
    model: str
    """As the invoice names it."""
    ledger: Amounts
    invoice: Amounts
    explained_by: tuple[str, ...]
    """Why the sides may differ, each with its range; empty when they are equal."""
    wrong: tuple[str, ...]
    """Differences that nothing explains."""
    kind: Kind
    """Of what is wrong."""

    @property
    def ok(self) -> bool:
        """Say whether every difference is explained."""
        return not self.wrong


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that does not add up."""

    kind: Kind
    where: str
    """Bucket and model, or a request id."""
    said: str


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """A ledger held against one invoice."""

    file: str
    """Name of the export."""
    format: str
    account: str
    """Whose lines were compared."""
    by: Literal["request id", "bucket and model"]
    rows: tuple[Reconciled, ...]
    faults: tuple[Fault, ...]
    mapping: tuple[tuple[str, str, str], ...]
    """Model of the ledger, model of the invoice, why they are one."""
    foreign: tuple[str, ...]
    """Lines of other projects, keys and times: left out."""
    credits: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Say whether the ledger and the invoice agree, or every difference is explained."""
        return not self.faults

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON values; money as strings of decimals."""
        found: dict[str, Any] = _plain(asdict(self))
        return {**found, "ok": self.ok}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}  # pyright: ignore
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]  # pyright: ignore
    return plain(value)
