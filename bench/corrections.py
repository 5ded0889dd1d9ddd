"""Corrections of a simulated broker's predictions, learned from their errors. A real broker has them from the database."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Final

from msgspec import Struct

from wms.broker.knowledge import Correction
from wms.broker.prediction import UNFELT, Part, Source
from wms.broker.robust_statistics import quantiles

RECENT: Final = 300
"""The largest number of latest predictions from which a correction is learned, for each site, part and source. Older ones may no longer hold."""


class ScoredPrediction(Struct, frozen=True, kw_only=True):
    """One prediction of a part of a job's time to delivery, with the time that it then took (`truth`). All times are in seconds.

    `site` is where the job was placed. `low` and `high` are the ends of the predicted interval. `model_seconds` is the prediction
    before corrections.
    """

    site: str
    part: Part
    source: Source
    seconds: float
    low: float
    high: float
    model_seconds: float
    truth: float


def corrections(scored: Iterable[ScoredPrediction]) -> Mapping[tuple[str, Part, Source], Correction]:
    """Return the past errors of each predictor, by site, part and source. The entry with an empty site is for all sites together.

    `scored` has the latest prediction first; only the first `RECENT` of each group count. Predictions whose truth is negative or not finite are
    ignored.
    """
    ratios: defaultdict[tuple[str, Part, Source], list[float]] = defaultdict(list)
    for each in filter(_has_truth, scored):
        for site in (each.site, ""):
            of_key = ratios[site, each.part, each.source]
            if len(of_key) < RECENT:
                of_key.append(_ratio(each.truth, each.model_seconds))
    return {key: _correction(values) for key, values in ratios.items()}


def _correction(ratios: Sequence[float]) -> Correction:
    low, median, high = quantiles(ratios, [0.05, 0.5, 0.95])
    return Correction(low=low, median=median, high=high, count=len(ratios))


def _ratio(truth: float, predicted: float) -> float:
    return (truth + UNFELT) / (predicted + UNFELT)


def _has_truth(scored: ScoredPrediction) -> bool:
    return isfinite(scored.truth) and scored.truth >= 0
