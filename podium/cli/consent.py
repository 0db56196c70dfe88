"""Consent: before a live pool is called, the user sees the maximum cost and agrees to it.

A limit in dollars (--max-usd) is consent, and so is --yes. The agreed maximum is recorded, so that
the user is asked about the same command again only if its maximum cost has risen.
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
"""If a run has fewer epochs than this, consent also shows the cost of this number of epochs."""


@dataclass(frozen=True, slots=True)
class Maximum:
    """The maximum cost of a command: dollars (None if unbounded), and number of calls."""

    usd: Decimal | None
    calls: int

    def covers(self, maximum: "Maximum") -> bool:
        """Return whether a user who agreed to this maximum also agreed to `maximum`."""
        if self.usd is None:
            return maximum.calls <= self.calls
        return maximum.usd is not None and maximum.usd <= self.usd


def agree(
    lines: Sequence[str],
    cost: Maximum,
    folder: Path,
    *,
    max_usd: Decimal | None,
    yes: bool,
    about: str = "",
) -> None:
    """Print the maximum cost of a command; UserError unless the user agrees, or has agreed before.

    Agreements are recorded in the folder that the command writes. `about` identifies workers and
    prices: an earlier agreement with another `about` does not count.
    """
    from podium.harness.run.experiment import AGREED

    say("\n".join(lines), file=sys.stderr)
    record = folder / AGREED
    limit = cost if max_usd is None else Maximum(max_usd, cost.calls)
    if any(agreed.covers(limit) for agreed in _agreed(record, about)):
        return
    bound = (
        "This has no maximum cost" if cost.usd is None else f"This can cost up to {_usd(cost.usd)}"
    )
    refusal = f"{bound}, and there is no terminal to ask. Add --max-usd USD to limit it, or --yes."
    if max_usd is None and not yes and not terminal_agrees(refusal, "Go on?"):
        raise UserError("You did not agree, so no model was called. Repeat the command to agree.")
    record.parent.mkdir(parents=True, exist_ok=True)
    usd = None if limit.usd is None else str(limit.usd)
    row = {"at": datetime.now(UTC).isoformat(), "usd": usd, "calls": limit.calls, "about": about}
    with record.open("a") as file:
        file.write(json.dumps(row) + "\n")


def terminal_agrees(refusal: str, question: str) -> bool:
    """Ask a question; return whether the answer is yes; UserError(refusal) without a terminal."""
    if not sys.stdin.isatty():
        raise UserError(refusal)
    say(f"{question} [y/N] ", file=sys.stderr, end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _agreed(record: Path, about: str) -> Iterator[Maximum]:
    for line in read_limited(record, MIB).splitlines() if record.is_file() else ():
        with suppress(ValueError, ArithmeticError, TypeError, KeyError):  # skips an invalid record
            row = json.loads(line)
            usd = None if row["usd"] is None else Decimal(row["usd"])
            if row["about"] == about:
                yield Maximum(usd, int(row["calls"]))


def agree_to_run(job: Any, estimate: Any, *, yes: bool) -> None:
    """Ask the user to agree to the maximum cost of a live run, which `estimate` has."""
    from podium.harness.task_suite import TaskSuite

    usd = None if estimate.most.usd is None else estimate.most.usd + estimate.already
    cost, request = Maximum(usd, int(estimate.most.calls)), job.request
    spent = f"; {_usd(estimate.already)} is already spent" if estimate.already else ""
    bill = _bill(estimate.most, estimate.expected)
    if any(isinstance(suite, TaskSuite) for suite in job.suites):
        bill = "an unknown number of calls: a task decides how many turns a question has"
    lines = [
        f"This run makes {bill} ({estimate.book}){spent}.",
        *(_shows(job, estimate, suite) for suite in job.suites),
    ]
    about = job.experiment.pool_key
    agree(lines, cost, request.log_dir, max_usd=request.max_usd, yes=yes, about=about)


def _shows(job: Any, estimate: Any, suite: Any) -> str:
    """Return a line: a suite's smallest detectable difference, and the cost of `EPOCHS` epochs."""
    from podium.reports.power import smallest_difference

    count, epochs = len(job.questions(suite)), job.experiment.epochs[suite.name]
    size = f"{pluralise(count, 'question')} x {pluralise(epochs, 'epoch')}"
    points = smallest_difference(count, epochs)
    usd = _usd_for_epochs(estimate, suite.name, count) if epochs < EPOCHS else None
    price = "" if usd is None else f"; {EPOCHS} epochs cost at most {_usd(usd)}"
    return (
        f"{suite.name}: {size} cannot detect less than {points:.0f} points (podium power){price}."
    )


def _usd_for_epochs(estimate: Any, suite: str, questions: int) -> Decimal | None:
    """Return a suite's maximum cost with `EPOCHS` epochs, training counted once; None: unknown."""
    from podium.harness.run.estimate import CHOOSING, TRAINING

    total = Decimal(0)
    for line in (line for line in estimate.lines if line.suite == suite):
        if line.most.usd is None or not line.left:
            return None
        once = line.system.startswith((CHOOSING, TRAINING))
        total += line.most.usd * (1 if once else Decimal(questions * EPOCHS) / line.left)
    return total


def agree_to_training(subject: str, jobs: Sequence[Any], folder: Path, *, yes: bool) -> None:
    """Ask the user to agree to the cost of trainings; those without live workers are free."""
    from podium.conductor.training.training_estimate import plan_totals
    from podium.harness.run.forecast import NO_CALLS

    live = [job for job in jobs if job.spec.label == "live"]
    if not live:
        return
    totals = [plan_totals(job) for job in live]
    cost = sum((total.most for total in totals), NO_CALLS)
    bill = _bill(cost, sum((total.usual for total in totals), NO_CALLS))
    limits = [job.max_usd for job in live if job.max_usd is not None]
    limit = sum(limits, Decimal(0)) if len(limits) == len(live) else None
    cost = Maximum(cost.usd, int(cost.calls))
    agree([f"{subject} make {bill}."], cost, folder, max_usd=limit, yes=yes)


def agree_to_serving(args: Any) -> None:
    """Ask the user to agree if a server has no dollar limit and other machines can reach it."""
    from podium.harness.listener import is_loopback
    from podium.harness.pool_config import read_pool

    limits = (args.max_usd, args.max_usd_per_day, args.max_usd_per_key)
    if any(limits) or args.keys is None or is_loopback(args.host):
        return  # without keys, other machines are refused
    if read_pool(args.pool).label == "live":
        line = f"Clients of {args.host} can spend without limit on pool {args.pool!r}."
        agree([line], Maximum(None, 0), args.log_dir, max_usd=None, yes=args.yes)


def _bill(cost: Any, likely: Any) -> str:
    """Return the maximum and the likely cost (`CallTotals`) in words."""
    bound = "no maximum cost" if cost.usd is None else f"at most {_usd(cost.usd)}"
    expected = "unknown" if likely.usd is None else _usd(likely.usd)
    return f"up to {pluralise(int(cost.calls), 'call')}: {bound}, likely {expected}"


def _usd(amount: Decimal) -> str:
    """Return dollars in whole cents, rounded up so that a maximum is never understated."""
    return f"${amount.quantize(CENT, rounding=ROUND_UP)}"
