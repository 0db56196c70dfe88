"""How many questions and epochs it takes to see an effect: tables for `podium power`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.errors import UserError
from harness.ledger.system_runs import load_runs
from harness.ledger.totals import SystemRun
from reports.blocks import ReportOptions, comparable_groups, reference_of
from reports.intervals import grades_of
from reports.render import aligned
from reports.stats import (
    Variance,
    detectable,
    questions_needed,
    variance_of_accuracies,
    variance_of_discordant,
    variance_of_draws,
)

SIZES = {"aime25": 30, "gpqa-diamond": 198, "livecodebench, newest 175": 175, "livecodebench": 1055}
"""Questions of suites that are often quoted."""
USUAL = (30, 100, 198, 500, 1055)
POWERS = (0.8, 0.9)
DISCORDANT, CORRELATION = 0.1, 0.5


@dataclass(frozen=True, slots=True)
class AssumedVariance:
    """What is assumed where no logs are there; shares of 1."""

    discordant: float | None = None
    accuracy: float | None = None
    correlation: float | None = None
    within: float | None = None


@dataclass(frozen=True, slots=True)
class VarianceSource:
    """A variance, and where it is from."""

    said: str
    variance: Variance
    questions: int | None = None


@dataclass(frozen=True, slots=True)
class PowerGrid:
    """What is asked: an effect (a share of 1), and tables of how many epochs and questions."""

    effect: float
    epochs: Sequence[int]
    questions: Sequence[int] | None = None


def assumed_variance(guess: AssumedVariance, effect: float) -> VarianceSource:
    """Return the variance that is assumed; UserError for assumptions that exclude each other."""
    if guess.discordant is not None and guess.accuracy is not None:
        raise UserError("--discordant and --accuracy both set the variance: name one of them.")
    if guess.accuracy is None and guess.correlation is not None:
        raise UserError("--correlation goes with --accuracy: name that, too.")
    if guess.accuracy is not None:
        together = CORRELATION if guess.correlation is None else guess.correlation
        found = variance_of_accuracies(guess.accuracy, guess.accuracy, together)
        said = f"accuracy {100 * guess.accuracy:g} %, grades correlated {together:g}"
    else:
        share = DISCORDANT if guess.discordant is None else guess.discordant
        if share < effect:
            raise UserError(
                f"Systems that differ on {100 * share:g} % of the questions cannot be "
                f"{100 * effect:g} points apart: raise --discordant, or lower --effect."
            )
        found = variance_of_discordant(share)
        said = f"two systems that differ on {100 * share:g} % of the questions, one draw each"
    if not found.between:
        raise UserError(
            f"At {said} two systems never differ: there is nothing to detect. Name an accuracy "
            "between 0 and 1 and a correlation below 1."
        )
    if guess.within is not None:
        said += f", {100 * guess.within:g} % of the variance within questions"
    within = guess.within or 0.0
    parted = Variance(found.between * (1 - within), found.between * within)
    return VarianceSource(f"assumed: {said}", parted)


def measured_variances(dirs: Sequence[Path], vs: str | None) -> list[VarianceSource]:
    """Return the variance of each system against the reference; UserError where there is none."""
    groups = comparable_groups(load_runs(dirs)[0], ReportOptions(vs=vs))
    found = [one for group in groups for one in _measured([run for run, _ in group], vs)]
    if not found:
        raise UserError(
            "These logs hold no two systems that were graded on the same questions, one of them "
            "a reference: name one with --vs, or leave --from out."
        )
    return found


def _measured(group: Sequence[SystemRun], vs: str | None) -> list[VarianceSource]:
    reference = reference_of(group, vs)
    if reference is None:
        return []
    theirs = _grades(reference)
    found: list[VarianceSource] = []
    for system_run in group:
        ours = _grades(system_run)
        both = sorted(ours.keys() & theirs.keys())
        if system_run is reference or len(both) < 2:
            continue
        mine, other = (np.array([one[name] for name in both]) for one in (ours, theirs))
        facts, tries = system_run.facts, system_run.epochs
        said = (
            f"{facts.suite} ({facts.label}): {facts.system} against {reference.facts.system}, "
            f"{len(both)} questions, {tries} epoch{'' if tries == 1 else 's'}"
        )
        found.append(VarianceSource(said, variance_of_draws(mine, other), len(both)))
    return found


def _grades(system_run: SystemRun) -> dict[str, list[float]]:
    """Return question -> grades, of the questions that were graded in every epoch."""
    grades = grades_of(system_run.attempts).items()
    return {name: made for name, made in grades if len(made) == system_run.epochs}


def power_text(sources: Sequence[VarianceSource], plan: PowerGrid) -> str:
    """Return what so many questions can show, source by source."""
    return "\n\n".join(_one(source, plan) for source in sources)


def _one(source: VarianceSource, plan: PowerGrid) -> str:
    once = source.variance
    if not once.between + once.within:
        return f"{source.said}\nno question tells the two apart: nothing follows for other numbers"
    parts = f"variance of a difference: {once.between:.4f} between questions"
    parts += f", {once.within:.4f} within" if once.within else "; within them unknown, taken as 0"
    epochs = [f"{k} epoch{'' if k == 1 else 's'}" for k in plan.epochs]
    shown = [
        (name, *(f"{100 * detectable(once.at(k), n):.1f}" for k in plan.epochs))
        for name, n in _sizes(source, plan)
    ]
    needed = [
        (
            f"{100 * power:g} %",
            *(f"{questions_needed(once.at(k), plan.effect, power):,}" for k in plan.epochs),
        )
        for power in POWERS
    ]
    lines = [source.said, parts, "detectable difference in points (80 % power, 5 % two-sided):"]
    lines += aligned([("questions", *epochs), *shown])
    lines.append(f"questions to see {100 * plan.effect:g} points:")
    lines += aligned([("power", *epochs), *needed])
    if not once.within and max(plan.epochs) > 1:
        lines.append(
            "How much epochs help is not known here: logs of two or more epochs (--from) say it, "
            "or --within."
        )
    return "\n".join(lines)


def _sizes(source: VarianceSource, plan: PowerGrid) -> list[tuple[str, int]]:
    sizes = {str(n): n for n in plan.questions or USUAL}
    if not plan.questions:
        sizes = {f"{n} ({name})": n for name, n in SIZES.items()} | {
            str(n): n for n in (*USUAL, *([source.questions] if source.questions else []))
            if n not in SIZES.values()
        }  # fmt: skip
    return sorted(sizes.items(), key=lambda item: item[1])
