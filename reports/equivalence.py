"""Are two systems the same, up to a margin? Two one-sided tests at 5 % each (TOST).

Schuirmann 1987, J. Pharmacokinetics and Biopharmaceutics 15(6); Lakens 2017, Social Psychological
and Personality Science 8(4). Student's t alone says so too often where few questions differ (up to
20 % of times instead of 5 %), and always where none does, be it of five: so the p-value is
the largest of three tests, each of which the margin must survive.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# scipy ships no types.

from math import ceil, floor, log, log1p, sqrt

import numpy as np
from scipy import special

from podium.reports.stats import LEVEL, TIE, Bounds, Floats, t_quantile

ALPHA = 1 - LEVEL  # of each of the two tests, so that their interval is one of 90 %


def equivalence_interval(deltas: Floats) -> Bounds | None:
    """Return Student's 90 % interval of the mean difference, within 1; None without spread."""
    mean, error = _mean_and_error(deltas)
    if error < TIE:
        return None
    half = t_quantile(1 - ALPHA, deltas.size - 1) * error
    return Bounds(max(mean - half, -1.0), min(mean + half, 1.0))


def equivalence_p(deltas: Floats, margin: float, *, single: bool) -> float:
    """Return the p-value of "the mean of the differences is `margin` or more, either way"."""
    return max(_p_below(one, margin, single=single) for one in (deltas, -deltas))


def tost(deltas: Floats, margin: float) -> float:
    """Return the same by Student's t alone: the 90 % interval lies within the margin below 5 %."""
    return max(_student(one, margin) for one in (deltas, -deltas))


def fewest_questions(margin: float) -> int:
    """Return how many questions show that two are equivalent if they differ on none of them."""
    return ceil(log(ALPHA) / log1p(-margin)) if margin < 1 else 1


def equivalence_words(margin: float) -> str:
    """Return what "equivalent" says in a table, and how many questions can say it at all."""
    return (
        f"equivalent: shown to differ by less than {100 * margin:g} points (two one-sided tests at "
        f"5 % each, Holm); it takes {fewest_questions(margin):,} questions or more"
    )


def _p_below(deltas: Floats, margin: float, *, single: bool) -> float:
    """Return the chance of a mean as low as theirs if the true one were `margin`."""
    score = tango if single else _supposing_more
    return max(_student(deltas, margin), score(deltas, margin), _all_or_nothing(deltas, margin))


def _student(deltas: Floats, margin: float) -> float:
    mean, error = _mean_and_error(deltas)
    if error < TIE:
        return 0.0 if mean < margin else 1.0
    return float(special.stdtr(deltas.size - 1, (mean - margin) / error))


def tango(deltas: Floats, margin: float) -> float:
    """Return the one-sided p-value of the score test for paired proportions (Tango 1998).

    Statistics in Medicine 17(8): discordant shares are estimated as if their difference were
    `margin`, so that questions on which nobody differs still have a spread.
    """
    n, ours, theirs = deltas.size, int((deltas > 0).sum()), int((deltas < 0).sum())
    b, c = (2 * n - ours + theirs) * margin - ours - theirs, -theirs * margin * (1 - margin)
    lost = (sqrt(b * b - 8 * n * c) - b) / (4 * n)
    spread = n * (2 * lost + margin * (1 - margin))
    return float(special.ndtr((ours - theirs - n * margin) / sqrt(spread))) if spread > 0 else 0.0


def _supposing_more(deltas: Floats, margin: float) -> float:
    """Return Student's with the spread that unseen questions, won outright, would add.

    So many of them as would bring the mean to the margin. For means over epochs, whose differences
    no exact model has: with it no simulated case passed 5 % (equivalence_size.py at bbc2f728).
    """
    left = min(max(margin - float(deltas.mean()), 0.0), 1.0)
    error = sqrt(_mean_and_error(deltas)[1] ** 2 + left * (1 - left) / deltas.size)
    if error < TIE or deltas.size < 2:
        return 1.0
    return float(special.stdtr(deltas.size - 1, -left / error))


def _all_or_nothing(deltas: Floats, margin: float) -> float:
    """Return the exact chance where a share `margin` of all questions is won and none is lost."""
    won = floor(float(deltas.sum()) + TIE * deltas.size)
    return float(special.bdtr(won, deltas.size, margin)) if won >= 0 else 0.0


def _mean_and_error(deltas: Floats) -> tuple[float, float]:
    spread = float(np.ptp(deltas)) if deltas.size else 0.0
    error = float(deltas.std(ddof=1)) / sqrt(deltas.size) if spread > TIE else 0.0
    return float(deltas.mean()), error
