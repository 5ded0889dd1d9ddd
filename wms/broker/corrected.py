"""Corrects a prediction's median and interval by the past errors of its predictor, at that site or over all sites."""

from math import exp, hypot, log
from typing import Final

from wms.broker.knowledge import Correction, Knowledge
from wms.broker.prediction import UNFELT, Part, Prediction, bounded

_OWN_PART: Final = 0.4
"""The part of a predictor's own interval that stays when its errors are known."""
_FURTHEST: Final = 20.0
"""The largest factor by which a correction moves a prediction: more than that is no error of the predictor."""


def corrected(prediction: Prediction, knowledge: Knowledge, site: str, part: Part) -> Prediction:
    """Return a prediction corrected by the past errors of its predictor for this `part` of the time to delivery at a site.

    It is returned unchanged if it comes from a reservation, or if `knowledge` has too few past predictions.
    """
    if prediction.source == "reservation":
        return prediction
    found = knowledge.correction(site, part, prediction.source)
    return prediction if found is None else _mended(prediction, found)


def _mended(prediction: Prediction, by: Correction) -> Prediction:
    centre = (prediction.model_seconds + UNFELT) * _believed(by.median)
    below = _half(by.median, by.low, by.count, prediction.seconds, prediction.low)
    above = _half(by.high, by.median, by.count, prediction.high, prediction.seconds)
    return Prediction(
        seconds=bounded(centre - UNFELT),
        low=min(bounded(centre - UNFELT), bounded(centre / below - UNFELT)),
        high=max(bounded(centre - UNFELT), bounded(centre * above - UNFELT)),
        source=prediction.source,
        model_seconds=prediction.model_seconds,
    )


def _half(above: float, below: float, count: int, said_above: float, said_below: float) -> float:
    """Return the factor from the median to one end of the interval: that of the errors so far, and part of what the predictor said.

    Errors of neighbours in time are alike, so that those so far scatter less than those to come.
    """
    erred = log(max(1.0, _believed(above) / _believed(below))) * _widening(count)
    said = log((said_above + UNFELT) / (said_below + UNFELT))
    return exp(hypot(erred, _OWN_PART * said))


def _believed(ratio: float) -> float:
    return min(max(ratio, 1 / _FURTHEST), _FURTHEST)


def _widening(count: int) -> float:
    """Return the power that a ratio's distance from the median is raised to: the 5 % quantile of few values lies too near to it.

    Between n values lie n+1 gaps, and the next value falls into each alike. For normal logarithms this is 1 + 5/n.
    """
    return 1.0 + 5.0 / max(1, count)
