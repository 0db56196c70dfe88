"""From a similarity to a chance to be right: two numbers, learnt on train rows (Platt 1999).

The slope is positive, so that the order stays: only a trade against dollars needs the chance.
"""

import numpy as np

from baselines.routing.descent import cross_entropy, sigmoid
from baselines.routing.smooth import lowest
from harness.learning.matrix import Floats

PENALTY = 1e-3
"""Keeps the slope finite where similarity tells all, or nothing."""


def calibration(near: Floats, scores: Floats) -> Floats:
    """Return (intercept, log of the slope) that fit known scores best, by cross-entropy."""
    known = (~np.isnan(scores)).astype(np.float64)
    targets = np.where(known > 0, scores, 0.0)
    count = max(float(known.sum()), 1.0)

    def slope(point: Floats) -> tuple[float, Floats]:
        steep = np.exp(point[1])
        logits = point[0] + steep * near
        gaps = (sigmoid(logits) - targets) * known / count
        by_point = np.array([gaps.sum(), (gaps * near).sum() * steep])
        loss = cross_entropy(logits, targets, known) + 0.5 * PENALTY * float(point @ point)
        return loss, by_point + PENALTY * point

    return lowest(slope, np.zeros(2))


def calibrated(near: Floats, point: Floats) -> Floats:
    """Return chances to be right, in the order of the similarities."""
    return sigmoid(point[0] + np.exp(point[1]) * near)
