"""Consent: before a live pool is asked, its user sees what that can cost, and agrees to it.

A limit in dollars is consent, and so is --yes. What was agreed to is written down, so that the same
command goes on without a question while it stays within that.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_UP, Decimal
from pathlib import Path
from typing import Any

from podium.harness.errors import UserError
from podium.harness.files import MIB, read_limited
from podium.harness.text import pluralise, say

CENT = Decimal("0.01")
EPOCHS = 8
"""The number of epochs whose price is named beside that of fewer."""


@dataclass(frozen=True, slots=True)
class Maximum:
    """The most that a command can take: dollars, None if nothing bounds them, and calls."""

    usd: Decimal | None
    calls: int

    def covers(self, other: "Maximum") -> bool:
        """Say whether who agreed to this has agreed to the other."""
        if self.usd is None:
            return other.calls <= self.calls
        return other.usd is not None and other.usd <= self.usd


def agree(
    lines: Sequence[str],
    most: Maximum,
    folder: Path,
    *,
    max_usd: Decimal | None,
    yes: bool,
    about: str = "",
) -> None:
    """Print what a command can cost; UserError unless its user agrees, or has agreed before.

    What is agreed to stands in a file of the folder that the command writes. `about` names the
    workers and their prices: what was agreed about others does not count.
    """
    from podium.harness.run.experiment import AGREED

    say("\n".join(lines), file=sys.stderr)
    record = folder / AGREED
    wanted = most if max_usd is None else Maximum(max_usd, most.calls)
    if any(agreed.covers(wanted) for agreed in _agreed(record, about)):
        return
    bound = "Nothing bounds this" if most.usd is None else f"This can cost up to {_usd(most.usd)}"
    refusal = f"{bound}, and no terminal is here to agree: add --max-usd USD to limit it, or --yes."
    if max_usd is None and not yes and not terminal_agrees(refusal, "Go on?"):
        raise UserError("It was not agreed to, so nobody was asked.")
    record.parent.mkdir(parents=True, exist_ok=True)
    usd = None if wanted.usd is None else str(wanted.usd)
    row = {"at": datetime.now(UTC).isoformat(), "usd": usd, "calls": wanted.calls, "about": about}
    with record.open("a") as file:
        file.write(json.dumps(row) + "\n")


def terminal_agrees(refusal: str, question: str) -> bool:
    """Ask at the terminal; UserError with the refusal where there is none."""
    if not sys.stdin.isatty():
        raise UserError(refusal)
    say(f"{question} [y/N] ", file=sys.stderr, end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _agreed(record: Path, about: str) -> Iterator[Maximum]:
    for line in read_limited(record, MIB).splitlines() if record.is_file() else ():
        with suppress(ValueError, ArithmeticError, TypeError, KeyError):  # no consent, then
            row = json.loads(line)
            usd = None if row["usd"] is None else Decimal(row["usd"])
            if row["about"] == about:
                yield Maximum(usd, int(row["calls"]))


def agree_to_run(job: Any, found: Any, *, yes: bool) -> None:
    """Let the user agree to a live run, of which an estimate was found."""
    from podium.harness.task_suite import TaskSuite

    usd = None if found.most.usd is None else found.most.usd + found.already
    most, request = Maximum(usd, int(found.most.calls)), job.request
    spent = f"; {_usd(found.already)} is spent already" if found.already else ""
    bill = _bill(found.most, found.expected)
    if any(isinstance(one, TaskSuite) for one in job.suites):
        bill = "calls whose number nobody knows: a task decides how many turns a question has"
    lines = [
        f"This run makes {bill} ({found.book}){spent}.",
        *(_shows(job, found, one) for one in job.suites),
    ]
    about = job.experiment.pool_key
    agree(lines, most, request.log_dir, max_usd=request.max_usd, yes=yes, about=about)


def _shows(job: Any, found: Any, suite: Any) -> str:
    """Return the smallest difference that the questions of a suite can show, and what more cost."""
    from podium.reports.power import smallest_difference

    count, epochs = len(job.questions(suite)), job.experiment.epochs[suite.name]
    asked = f"{pluralise(count, 'question')} x {pluralise(epochs, 'epoch')}"
    points = smallest_difference(count, epochs)
    usd = _usd_for_epochs(found, suite.name, count) if epochs < EPOCHS else None
    more = "" if usd is None else f"; {EPOCHS} epochs cost at most {_usd(usd)}"
    return f"{suite.name}: {asked} cannot show less than {points:.0f} points (podium power){more}."


def _usd_for_epochs(found: Any, suite: str, questions: int) -> Decimal | None:
    """Return what a suite costs at most with more epochs; it chooses and learns only once."""
    from podium.harness.run.estimate import CHOOSING, TRAINING

    total = Decimal(0)
    for line in (line for line in found.lines if line.suite == suite):
        if line.most.usd is None or not line.left:
            return None
        once = line.system.startswith((CHOOSING, TRAINING))
        total += line.most.usd * (1 if once else Decimal(questions * EPOCHS) / line.left)
    return total


def agree_to_training(what: str, jobs: Sequence[Any], folder: Path, *, yes: bool) -> None:
    """Let the user agree to trainings, of which those on rehearsed or recorded workers are free."""
    from podium.conductor.training.training_estimate import plan_totals
    from podium.harness.run.forecast import NO_CALLS

    live = [job for job in jobs if job.spec.label == "live"]
    if not live:
        return
    totals = [plan_totals(job) for job in live]
    most = sum((one.most for one in totals), NO_CALLS)
    bill = _bill(most, sum((one.usual for one in totals), NO_CALLS))
    limits = [job.max_usd for job in live if job.max_usd is not None]
    limit = sum(limits, Decimal(0)) if len(limits) == len(live) else None
    most = Maximum(most.usd, int(most.calls))
    agree([f"{what} make {bill}."], most, folder, max_usd=limit, yes=yes)


def agree_to_serving(args: Any) -> None:
    """Let the user agree to a server without a limit of dollars that other machines reach."""
    from podium.harness.listener import is_loopback
    from podium.harness.pool_config import read_pool

    limits = (args.max_usd, args.max_usd_per_day, args.max_usd_per_key)
    if any(limits) or args.keys is None or is_loopback(args.host):
        return  # without keys other machines are refused
    if read_pool(args.pool).label == "live":
        line = f"Clients of {args.host} may spend any number of dollars on pool {args.pool!r}."
        agree([line], Maximum(None, 0), args.log_dir, max_usd=None, yes=args.yes)


def _bill(most: Any, likely: Any) -> str:
    """Say what two `CallTotals` come to: at most, and as is expected."""
    bound = "dollars that nothing bounds" if most.usd is None else f"at most {_usd(most.usd)}"
    expected = "unknown" if likely.usd is None else _usd(likely.usd)
    return f"up to {pluralise(int(most.calls), 'call')}: {bound}, likely {expected}"


def _usd(amount: Decimal) -> str:
    """Return dollars in whole cents, rounded up: a maximum is never less than it is."""
    return f"${amount.quantize(CENT, rounding=ROUND_UP)}"
