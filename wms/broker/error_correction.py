"""Corrects a prediction's median and interval by the past errors of its predictor, at that site or over all sites."""

from math import exp, hypot, log
from typing import Final

from msgspec.structs import replace

from wms.broker.knowledge import Correction, Knowledge
from wms.broker.prediction import UNFELT, Part, Prediction, bounded

_OWN_PART: Final = 0.4
"""The weight, 0 to 1, of the predictor's own interval in a corrected interval."""
_FURTHEST: Final = 20.0
"""The largest factor by which a correction moves a prediction. Larger past errors have other causes than the predictor."""

SLOWNESS: Final = 20.0
"""The number of past errors by which `corrected_slowly` moves a prediction by half of their median (as a logarithm)."""


def corrected(prediction: Prediction, knowledge: Knowledge, site: str, part: Part) -> Prediction:
    """Return a prediction corrected by the past errors of its predictor for this `part` of the time to delivery at a site.

    It is returned unchanged if it comes from a reservation, or if `knowledge` has too few past predictions.
    """
    if prediction.source == "reservation":
        return prediction
    found = knowledge.correction(site, part, prediction.source)
    return prediction if found is None else _mended(prediction, found)


def corrected_slowly(prediction: Prediction, knowledge: Knowledge, site: str, part: Part) -> Prediction:
    """Return a prediction with its median and interval moved by part of the past errors at this site: `SLOWNESS` errors move it by half.

    So a part is predicted whose true times are known late. Jobs are placed meanwhile, so that a full correction would bring too many jobs, then
    too few. Errors at other sites do not count, since what is wrong is mostly what one site tells.
    """
    found = knowledge.corrections.get((site, part, prediction.source))
    if found is None:
        return prediction
    factor = _believed(found.median) ** (found.count / (found.count + SLOWNESS))
    return replace(
        prediction,
        seconds=_scaled(prediction.seconds, factor),
        low=_scaled(prediction.low, factor),
        high=_scaled(prediction.high, factor),
    )


def _scaled(seconds: float, factor: float) -> float:
    return bounded((seconds + UNFELT) * factor - UNFELT)


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
    """Return the factor from the median to one end of the corrected interval. It combines past errors and the predictor's own interval.

    `above` and `below` are the quantiles of past errors at the end's outer and inner side, from `count` predictions. `said_above` and `said_below`
    are the predicted seconds there. Past errors scatter less than future ones, since errors of neighbouring predictions are alike.
    """
    erred = log(max(1.0, _believed(above) / _believed(below))) * _widening(count)
    said = log((said_above + UNFELT) / (said_below + UNFELT))
    return exp(hypot(erred, _OWN_PART * said))


def _believed(ratio: float) -> float:
    return min(max(ratio, 1 / _FURTHEST), _FURTHEST)


def _widening(count: int) -> float:
    """Return the exponent that widens an observed error ratio, because the 5 % quantile of few values lies too near to the median.

    The next value is equally likely in each of the n+1 gaps between n values. For normally distributed logarithms the exponent is about 1 + 5/n.
    """
    return 1.0 + 5.0 / max(1, count)
