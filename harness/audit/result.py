"""What an audit says: faults, a verdict per invariant, and figures that add up over sittings.

Plain records without paths and without the time of the audit: the same files give the same bytes.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Status = Literal["pass", "weak", "fail", "not applicable"]
"""`weak`: nothing contradicts it, and a strict audit fails on what the record lacks."""


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One place where an invariant does not hold."""

    invariant: str
    """`I1` to `I16`."""
    task: str
    """The sitting: Inspect's task name, with its folder where there are several."""
    where: str
    """`call ID`, `sample QUESTION epoch N`, `journal NAME` or `log NAME`."""
    said: str


@dataclass(slots=True)
class Checked:
    """What one invariant found in one sitting."""

    faults: list[Fault] = field(default_factory=list[Fault])
    skipped: str = ""
    """Why nothing could be checked here; empty when it was."""
    matters: bool = False
    """True when `skipped` is a gap in the record, which a strict audit does not accept."""
    weak: Counter[str] = field(default_factory=Counter[str])
    """What holds and is less than a reviewer may ask for, with how often; strict: a failure."""
    notes: Counter[str] = field(default_factory=Counter[str])
    """What a reader should know and holds against nobody, with how often."""

    def add(self, other: "Checked") -> None:
        """Take what another check of the same invariant found."""
        self.faults += other.faults
        self.weak += other.weak
        self.notes += other.notes


@dataclass(frozen=True, slots=True)
class Verdict:
    """One invariant over all sittings."""

    invariant: str
    title: str
    meaning: str
    status: Status
    checked: int
    """Sittings in which it was checked."""
    reasons: tuple[tuple[str, int], ...]
    """Why it was not checked, what is weak, what else to know; with how many sittings or rows."""
    faults: tuple[Fault, ...]


@dataclass(slots=True)
class Findings:
    """What is known of one invariant while sittings are added up."""

    checked: int = 0
    skipped: Counter[str] = field(default_factory=Counter[str])
    gaps: Counter[str] = field(default_factory=Counter[str])
    """Skipped for a gap in the record."""
    weak: Counter[str] = field(default_factory=Counter[str])
    notes: Counter[str] = field(default_factory=Counter[str])
    faults: list[Fault] = field(default_factory=list[Fault])

    def add(self, one: Checked) -> None:
        """Add one sitting."""
        if one.skipped:
            (self.gaps if one.matters else self.skipped)[one.skipped] += 1
        else:
            self.checked += 1
        self.weak += one.weak
        self.notes += one.notes
        self.faults += one.faults

    def join(self, other: "Findings") -> None:
        """Add what another process found."""
        self.checked += other.checked
        self.skipped += other.skipped
        self.gaps += other.gaps
        self.weak += other.weak
        self.notes += other.notes
        self.faults += other.faults

    def status(self, *, strict: bool) -> Status:
        """Return the verdict; a strict one takes gaps in the record for failures."""
        if self.faults or (strict and (self.gaps or self.weak)):
            return "fail"
        if self.gaps or self.weak:
            return "weak"
        return "pass" if self.checked else "not applicable"

    def reasons(self) -> tuple[tuple[str, int], ...]:
        """Return why it was not checked everywhere, and what is weak."""
        return tuple(sorted((self.skipped + self.gaps + self.weak + self.notes).items()))


def ordered(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return faults in their one order, each once."""
    return tuple(sorted(set(faults)))
