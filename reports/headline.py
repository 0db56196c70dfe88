"""The sentence above every table: the verdict on the system that was declared before the run."""

from collections.abc import Sequence
from math import ceil

from podium.reports import stats
from podium.reports.render import count, interval_words, p_value, points, usd_about
from podium.reports.row import TableRow

ALPHA = 1 - stats.LEVEL
EFFECT = 0.1
"""Difference in accuracy, as a fraction, for which the headline states the needed questions."""


def headline(rows: Sequence[TableRow], declared: str) -> str:
    """Return the main result of a block of rows in a sentence; empty if nothing is compared."""
    compared = [row for row in rows if row.paired_diff is not None]
    if not compared:
        return ""
    row = headline_row(compared, declared)
    return _of_row(row) if row else _of_all(compared)


def headline_row(rows: Sequence[TableRow], declared: str) -> TableRow | None:
    """Return the row of the declared system; None if no such row is compared with the reference."""
    matches = (row for row in rows if declared and row.system == declared)
    return next((row for row in matches if row.paired_diff is not None), None)


def _of_row(row: TableRow) -> str:
    bounds = interval_words(row.paired_low, row.paired_high)
    sure = ", ".join(filter(None, (bounds and f"95 % {bounds}", f"Holm p {p_value(row.p_holm)}")))
    text = f"{row.verdict.capitalize()}: {row.system} against {row.reference}"
    text += f", {points(row.paired_diff)} points ({sure})"
    if row.usd_ratio is None:
        return text
    return f"{text}, at {usd_about(row.usd_ratio)} of its list dollars, learning excluded"


def _of_all(compared: Sequence[TableRow]) -> str:
    plain = [row for row in compared if row.reference_allowed and not row.uses_targets]
    better = sum(row.verdict == "better" for row in plain)
    if better:
        beat = "1 system is" if better == 1 else f"{better} systems are"
        return f"{beat} shown to beat {compared[0].reference}; none was declared before the run"
    effects = [(row.min_detectable, row.n_paired or 0) for row in plain if row.min_detectable]
    text = f"Nothing is shown to beat {compared[0].reference}"
    if not effects:
        return text
    needed = max(ceil(paired * (effect / EFFECT) ** 2) for effect, paired in effects)
    about = "more than" if max(effects)[0] >= 1 else "about"  # detectable differences: at most 1
    questions = count(float(f"{needed:.2g}"))
    return f"{text}; {about} {questions} questions would be needed to see {100 * EFFECT:g} points"


def why_inconclusive(row: TableRow) -> str:
    """Return the first reason why a row's verdict is inconclusive; empty for other verdicts."""
    if row.verdict != "inconclusive" or row.n_better is None or row.n_worse is None:
        return ""
    low, high = row.paired_low, row.paired_high
    reasons = {
        "all grades equal the reference's": not row.n_better + row.n_worse,
        "the 95 % interval includes 0": low is not None and high is not None and low <= 0 <= high,
        "the sign test's p is 0.05 or more": stats.mcnemar(row.n_better, row.n_worse) >= ALPHA,
        "Holm's p is 0.05 or more": row.p_holm is not None and row.p_holm >= ALPHA,
        "the difference is smaller than a single comparison can show": True,
    }
    return next(reason for reason, holds in reasons.items() if holds)
