"""The sentence above every table: the verdict on the system that was declared before the run."""

from collections.abc import Sequence
from math import ceil

from podium.reports import stats
from podium.reports.render import count, interval_words, p_value, points, usd_about
from podium.reports.row import TableRow

ALPHA = 1 - stats.LEVEL
EFFECT = 0.1
"""The difference for which a sentence says how many questions it takes."""


def headline(rows: Sequence[TableRow], declared: str) -> str:
    """Return the sentence on a block's rows; empty where nothing is compared."""
    compared = [row for row in rows if row.paired_diff is not None]
    if not compared:
        return ""
    row = headline_row(compared, declared)
    return _of_row(row) if row else _of_all(compared)


def headline_row(rows: Sequence[TableRow], declared: str) -> TableRow | None:
    """Return the row of the declared system, if it is compared with another."""
    named = (row for row in rows if declared and row.system == declared)
    return next((row for row in named if row.paired_diff is not None), None)


def _of_row(row: TableRow) -> str:
    bounds = interval_words(row.paired_low, row.paired_high)
    sure = ", ".join(filter(None, (bounds and f"95 % {bounds}", f"Holm p {p_value(row.p_holm)}")))
    said = f"{row.verdict.capitalize()}: {row.system} against {row.reference}"
    said += f", {points(row.paired_diff)} points ({sure})"
    if row.usd_ratio is None:
        return said
    return f"{said}, at {usd_about(row.usd_ratio)} of its list dollars, learning excluded"


def _of_all(compared: Sequence[TableRow]) -> str:
    plain = [row for row in compared if row.reference_allowed and not row.uses_targets]
    better = sum(row.verdict == "better" for row in plain)
    if better:
        beat = "1 system is" if better == 1 else f"{better} systems are"
        return f"{beat} shown to beat {compared[0].reference}; none was declared before the run"
    known = [(row.min_detectable, row.n_paired or 0) for row in plain if row.min_detectable]
    said = f"Nothing is shown to beat {compared[0].reference}"
    if not known:
        return said
    needed = max(ceil(paired * (effect / EFFECT) ** 2) for effect, paired in known)
    about = "more than" if max(known)[0] >= 1 else "about"  # a detectable difference ends at 1
    wanted = count(float(f"{needed:.2g}"))
    return f"{said}; {about} {wanted} questions would be needed to see {100 * EFFECT:g} points"


def why_inconclusive(row: TableRow) -> str:
    """Return why a row's verdict is open: the first test that does not confirm a difference."""
    if row.verdict != "inconclusive" or row.n_better is None or row.n_worse is None:
        return ""
    low, high = row.paired_low, row.paired_high
    reasons = {
        "no question tells it from the reference": not row.n_better + row.n_worse,
        "the 95 % interval holds 0": low is not None and high is not None and low <= 0 <= high,
        "the sign test's p is 0.05 or more": stats.mcnemar(row.n_better, row.n_worse) >= ALPHA,
        "Holm's p is 0.05 or more": row.p_holm is not None and row.p_holm >= ALPHA,
        "the difference is below what a single comparison can show": True,
    }
    return next(why for why, holds in reasons.items() if holds)
