"""Corrections: a predictor's median and interval, mended by how it erred at that site, or everywhere, so far."""

from wms.broker.knowledge import Correction, Knowledge
from wms.broker.prediction import UNFELT, Part, Prediction, bounded

_FURTHEST = 20.0
"""The largest factor by which a correction moves a prediction: more than that is no error of the predictor."""


def corrected(prediction: Prediction, knowledge: Knowledge, site: str, part: Part) -> Prediction:
    """Return a prediction as its predictor's errors at a site mend it; unchanged for reservations and where too little is known."""
    if prediction.source == "reservation":
        return prediction
    found = knowledge.correction(site, part, prediction.source)
    return prediction if found is None else _mended(prediction, found)


def _mended(prediction: Prediction, by: Correction) -> Prediction:
    model = prediction.model_seconds + UNFELT
    low, centre, high = (bounded(model * _believed(each) - UNFELT) for each in (by.low, by.median, by.high))
    return Prediction(
        seconds=centre,
        low=min(low, centre),
        high=max(high, centre),
        source=prediction.source,
        model_seconds=prediction.model_seconds,
    )


def _believed(ratio: float) -> float:
    return min(max(ratio, 1 / _FURTHEST), _FURTHEST)
