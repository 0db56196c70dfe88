"""How many questions and epochs are needed to see an effect: tables for `podium power`."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from podium.harness.errors import UserError
from podium.harness.ledger.system_runs import load_runs
from podium.harness.ledger.totals import SystemRun
from podium.harness.text import aligned, pluralise
from podium.reports import stats
from podium.reports.blocks import ReportOptions, comparable_groups, reference_of
from podium.reports.intervals import grades_of

SIZES = {"aime25": 30, "gpqa-diamond": 198, "livecodebench, newest 175": 175, "livecodebench": 1055}
"""Name of an often quoted suite -> its number of questions."""
USUAL = (30, 100, 198, 500, 1055)
POWERS = (0.8, 0.9)
DISCORDANT, CORRELATION = 0.1, 0.5
Share = float | None
Source = tuple[str, stats.Variance, int | None]
"""A variance's origin in words, the variance, and how many questions measured it (or None)."""


def assumed_variance(
    effect: float, *, discordant: Share, accuracy: Share, correlation: Share, within: Share
) -> Source:
    """Return the variance that options of `podium power` imply; UserError if options conflict."""
    if discordant is not None and accuracy is not None:
        raise UserError("--discordant and --accuracy both set the variance. Give only one of them.")
    if accuracy is None and correlation is not None:
        raise UserError("--correlation needs --accuracy. Give --accuracy, too.")
    if accuracy is not None:
        together = CORRELATION if correlation is None else correlation
        variance = stats.variance_of_accuracies(accuracy, accuracy, together)
        text = f"accuracy {100 * accuracy:g} %, grades correlated {together:g}"
    else:
        share = DISCORDANT if discordant is None else discordant
        if share < effect:
            raise UserError(
                f"Systems that differ on {100 * share:g} % of the questions cannot be "
                f"{100 * effect:g} points apart. Raise --discordant, or lower --effect."
            )
        variance = stats.Variance(share, 0.0)  # one draw shows no variance within questions
        text = f"two systems that differ on {100 * share:g} % of the questions, one draw each"
    if not variance.between:
        raise UserError(
            f"At {text} two systems never differ: there is nothing to detect. Give an accuracy "
            "between 0 and 1 and a correlation below 1."
        )
    if within is not None:
        text += f", {100 * within:g} % of the variance within questions"
    share = within or 0.0
    parted = stats.Variance(variance.between * (1 - share), variance.between * share)
    return (f"assumed: {text}", parted, None)


def measured_variances(dirs: Sequence[Path], vs: str | None) -> list[Source]:
    """Return from logs the variance of each system's difference from a reference.

    UserError if no reference and system were graded on the same questions.
    """
    groups = comparable_groups(load_runs(dirs)[0], ReportOptions(vs=vs))
    sources = [source for group in groups for source in _measured([run for run, _ in group], vs)]
    if not sources:
        raise UserError(
            "These logs have no reference and second system that were graded on the same "
            "questions. Name a reference with --vs, or leave out --from."
        )
    return sources


def _measured(group: Sequence[SystemRun], vs: str | None) -> list[Source]:
    reference = reference_of(group, vs)
    if reference is None:
        return []
    theirs = _grades(reference)
    sources: list[Source] = []
    for system_run in group:
        ours = _grades(system_run)
        both = sorted(ours.keys() & theirs.keys())
        if system_run is reference or len(both) < 2:
            continue
        mine, base = (np.array([grades[name] for name in both]) for grades in (ours, theirs))
        facts, tries = system_run.facts, system_run.epochs
        text = (
            f"{facts.suite} ({facts.label}): {facts.system} against {reference.facts.system}, "
            f"{len(both)} questions, {tries} epoch{'' if tries == 1 else 's'}"
        )
        sources.append((text, stats.variance_of_draws(mine, base), len(both)))
    return sources


def _grades(system_run: SystemRun) -> dict[str, list[float]]:
    """Return question -> grades, of the questions that were graded in every epoch."""
    grades = grades_of(system_run.attempts).items()
    return {name: values for name, values in grades if len(values) == system_run.epochs}


def power_text(
    source: Source, effect: float, epochs: Sequence[int], questions: Sequence[int] | None
) -> str:
    """Return the text of `podium power`: detectable differences by numbers of questions, epochs."""
    text, once, measured = source
    if not once.between + once.within:
        equal = "the two have equal grades on every question"
        return f"{text}\n{equal}, so nothing follows for other numbers of questions"
    spread = f"variance of a difference: {once.between:.4f} between questions"
    unknown = "; the variance within questions is unknown and taken as 0"
    spread += f", {once.within:.4f} within" if once.within else unknown
    heads = [f"{k} epoch{'' if k == 1 else 's'}" for k in epochs]
    rows = [
        (name, *(f"{100 * stats.detectable(once.at(k), n):.1f}" for k in epochs))
        for name, n in _sizes(measured, questions)
    ]
    needed = [("power", *heads)]
    for power in POWERS:
        cells = (f"{stats.questions_needed(once.at(k), effect, power):,}" for k in epochs)
        needed.append((f"{100 * power:g} %", *cells))
    lines = [text, spread, "detectable difference in points (80 % power, 5 % two-sided):"]
    lines += aligned([("questions", *heads), *rows])
    most = 100.0 if measured else 100 * (once.between + once.within)  # the share that differs
    if any(float(cell) > most for _, *cells in rows for cell in cells):
        lines.append(
            f"Such systems differ by at most {most:g} points: above that, nothing is shown."
        )
    lines.append(f"questions to see {100 * effect:g} points:")
    lines += aligned(needed)
    if not once.within and max(epochs) > 1:
        lines.append(
            "The effect of more epochs is unknown. Give logs with two or more epochs (--from), or "
            "--within."
        )
    return "\n".join(lines)


def smallest_difference(questions: int, epochs: int) -> float:
    """Return the smallest detectable difference in points, as `podium power` assumes by default."""
    variance = stats.Variance(DISCORDANT, 0.0).at(epochs)
    return min(100.0, 100 * stats.detectable(variance, questions))


SATURATED = 0.95


def saturation(accuracies: Sequence[float], questions: int) -> str:
    """Return a warning if an accuracy is above 95 %, with the difference still detectable; else "".

    `accuracies`: of systems that do not see right answers. As in `podium power --accuracy`, grades
    of two systems are assumed to have correlation 0.5, and each question to be asked once.
    """
    best = max(accuracies, default=0.0)
    if best <= SATURATED:
        return ""
    variance = stats.variance_of_accuracies(best, best, CORRELATION)
    count = pluralise(questions, "question")
    reached = f"saturated, the best row has {100 * best:.1f} % of {count}"
    if not variance.between:
        return f"{reached}: no better system can be shown"
    smallest = min(100.0, 100 * stats.detectable(variance.at(1), questions))
    return (
        f"{reached}: at this accuracy they show only differences of {smallest:.1f} points or more "
        f"(podium power --accuracy {best:.3f} --questions {questions})"
    )


def _sizes(measured: int | None, questions: Sequence[int] | None) -> list[tuple[str, int]]:
    sizes = {str(n): n for n in questions or [*USUAL, *([measured] if measured else [])]}
    if not questions:
        for name, n in SIZES.items():
            sizes.pop(str(n), None)
            sizes[f"{n} ({name})"] = n
    return sorted(sizes.items(), key=lambda item: item[1])
