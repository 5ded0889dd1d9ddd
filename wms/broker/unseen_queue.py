"""Predicts the wait in a queue whose length is not told, from how long earlier jobs waited there, and how long some still wait.

A queue changes slowly. So the wait of the last jobs to start is a good estimate of the next job's, and a better one than the average
of many (Ibrahim and Whitt, 2009). With time it tells less: the logarithm of the wait returns to the usual one as an
Ornstein-Uhlenbeck process does, so that a site that once was full is tried again. A job that still waits shows at once that
waits are longer than it has waited so far. The estimate is then the mean over the longer waits alone.
"""

from collections.abc import Sequence
from datetime import datetime
from math import exp, hypot, log
from statistics import NormalDist, median

from wms.broker.knowledge import MeasuredWait
from wms.broker.prediction import UNFELT, Estimate, bounded

USUAL_WAIT = 1_800.0
"""The wait in seconds that is assumed where none was measured. It is short, so that a site of which nothing is known is tried."""
RELAXATION = 6 * 3_600.0
"""Seconds after which the logarithm of a wait has returned to the usual one by all but a factor of 1/e."""
_USUAL_SPREAD, _MEASURED_SPREAD = 1.5, 0.5
_LAST = 3
"""How many of the last waits count: the median of three is not moved by one outlier."""
_FARTHEST = 6.0
"""The largest distance from the mean, in standard deviations, for which the normal distribution's tail is computed."""


def predict_unseen(waits: Sequence[MeasuredWait], waiting: Sequence[float], now: datetime) -> Estimate:
    """Return the estimated wait of a new job, from earlier waits (latest first) and the seconds for which other jobs wait so far."""
    estimate = _relaxed(waits[:_LAST], now)
    return longer_than(estimate, max(waiting)) if waiting else estimate


def _relaxed(last: Sequence[MeasuredWait], now: datetime) -> Estimate:
    if not last:
        return Estimate(USUAL_WAIT, _USUAL_SPREAD, "none")
    age = max(0.0, (now - max(each.at for each in last)).total_seconds())
    kept = exp(-age / RELAXATION)
    usual, measured = _log(USUAL_WAIT), median(_log(each.seconds) for each in last)
    spread = hypot(kept * _MEASURED_SPREAD, (1 - kept**2) ** 0.5 * _USUAL_SPREAD)
    return Estimate(_seconds(usual + kept * (measured - usual)), spread, "history")


def longer_than(estimate: Estimate, seconds: float) -> Estimate:
    """Return the estimate of a wait that is known to be longer than `seconds`: the mean and spread of the distribution's part above."""
    normal = NormalDist()
    z = min((_log(seconds) - _log(estimate.seconds)) / estimate.spread, _FARTHEST)
    hazard = normal.pdf(z) / normal.cdf(-z)
    centre = _log(estimate.seconds) + estimate.spread * hazard
    left = 1 - hazard * (hazard - z)
    return Estimate(max(seconds, _seconds(centre)), estimate.spread * left**0.5, "history")


def _log(seconds: float) -> float:
    return log(bounded(seconds) + UNFELT)


def _seconds(logarithm: float) -> float:
    return max(0.0, exp(logarithm) - UNFELT)
