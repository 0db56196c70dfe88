"""What a reader asks of a report: a reference by name, some of the epochs, a majority of k tries.

Also what is refused for it, in one sentence with the way out. Which sittings may be compared at all
is reports/reference.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.errors import UserError
from harness.sittings import Sitting
from reports.majority import FEWEST
from reports.reference import Group, group_of
from reports.row import Row


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of a report; as they are here, they ask for nothing special."""

    vs: str | None = None
    """System that all others are held against."""
    epochs: int | None = None
    """Only so many epochs of every question, the first ones."""
    maj: int | None = None
    """Tries in a majority; all epochs where it is not said."""
    derived: bool = False
    """Show derived rows in the terminal, too; table.md always has them."""
    published: bool = False
    """Show published figures in the terminal, too."""


EVERYTHING = Wanted()
NAMED = "named by --vs"


def refuse_unknown(vs: str | None, exams: Sequence[Sitting]) -> None:
    """Raise UserError for a reference that is not there, or alone."""
    if vs is None:
        return
    names = sorted({sitting.facts.system for sitting in exams})
    if vs not in names:
        raise UserError(f"There is no system {vs!r} in these logs; there are: {', '.join(names)}.")
    if len(exams) == 1:
        raise UserError(f"{vs} is the one system only: there is nothing to compare.")


def refuse_mixed_epochs(exams: Sequence[Sitting]) -> None:
    """Raise UserError when rows to be compared were asked a different number of times."""
    groups: dict[Group, list[Sitting]] = {}
    for sitting in exams:
        groups.setdefault(group_of(sitting), []).append(sitting)
    for group in groups.values():
        asked = sorted({sitting.epochs for sitting in group})
        if len(asked) > 1:
            facts = group[0].facts
            raise UserError(
                f"Systems on {facts.suite} ({facts.split}, {facts.label}, pool {facts.pool}) were "
                f"asked each question a different number of times: {_each(group)}. Where a run "
                f"raised its epochs and was interrupted, the same command finishes it; else "
                f"--epochs {asked[0]} compares the first {_first(asked[0])} of all."
            )


def _each(group: Sequence[Sitting]) -> str:
    said = sorted(f"{sitting.facts.system} {sitting.epochs}" for sitting in group)
    return ", ".join(said[:10]) + (", ..." if len(said) > 10 else "")


def _first(epochs: int) -> str:
    return "epoch" if epochs == 1 else f"{epochs} epochs"


def first_epochs(sitting: Sitting, wanted: int | None) -> Sitting:
    """Return a sitting as if each question had been asked `wanted` times; UserError for too many.

    What was paid and all other sums of calls stay those of every epoch.
    """
    if wanted is None or wanted == sitting.epochs:
        return sitting
    if not 1 <= wanted <= sitting.epochs:
        raise UserError(
            f"--epochs {wanted}: {sitting.facts.system} on {sitting.facts.suite} has "
            f"{sitting.epochs}; name a number from 1 to that."
        )
    kept = tuple(one for one in sitting.attempts if one.epoch <= wanted)
    asked = sitting.asked * wanted // sitting.epochs
    return replace(sitting, attempts=kept, epochs=wanted, asked=max(asked, len(kept)))


def cut(row: Row, epochs: int) -> Row:
    """Return a row of the first epochs without the figures that are sums over all `epochs`."""
    if row.epochs == epochs:
        return row
    said = f"the first {_first(row.epochs)} of {epochs}; what was paid is of all, see the spend"
    return replace(
        row,
        usd_paid_per_query=None,
        usd_paid_low=None,
        usd_paid_high=None,
        usd_gpu_per_query=None,
        usd_scoring_per_query=None,
        notes="; ".join(filter(None, (row.notes, said))),
    )


def refuse_too_many_tries(maj: int | None, exams: Sequence[Sitting]) -> None:
    """Raise UserError when no system was asked often enough for a majority of `maj` tries."""
    if maj is None:
        return
    if maj < FEWEST:
        raise UserError(f"--maj {maj}: a majority takes {FEWEST} tries or more.")
    most = max((sitting.epochs for sitting in exams), default=0)
    if maj > most:
        fewer = f", or ask for --maj {most} or fewer" if most >= FEWEST else ""
        raise UserError(
            f"A majority of {maj} needs {maj} epochs, and these logs have {most}: run with "
            f"--epochs {maj}{fewer}."
        )
