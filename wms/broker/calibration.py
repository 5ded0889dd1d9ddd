"""Calibration: compares predicted times with what happened, by site and by predictor, and derives corrections for later predictions.

A prediction is *covered* if its interval contains the true value; of 90 % intervals, 90 % should be covered. The ratio of the
true value to the prediction has the median 1 for a predictor without a bias.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from wms.broker.knowledge import Correction
from wms.broker.prediction import UNFELT, Part, Source
from wms.broker.robust_statistics import quantiles

By: TypeAlias = Literal["site", "predictor", "both"]
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

    @property
    def is_covered(self) -> bool:
        """Whether the predicted interval contains the true value."""
        return self.low <= self.truth <= self.high


class Calibration(Struct, frozen=True, kw_only=True):
    """How good the predictions of one part of the time to delivery were, over `count` predictions.

    An empty `site` or `source` means that all sites, or all predictors, are counted together.
    """

    site: str
    part: Part
    source: str
    count: int
    covered: float
    """The share of the predictions whose interval contains the true value, 0 to 1."""
    ratio: float
    """The median of (truth + `UNFELT`) / (prediction + `UNFELT`), in seconds; 1 means no bias. The offset keeps ratios finite
    near 0 s."""
    error_seconds: float
    """The median of the absolute difference of prediction and truth, in seconds."""


class _Key(NamedTuple):
    site: str
    part: Part
    source: str


def calibrate(scored: Iterable[ScoredPrediction], by: By = "both") -> list[Calibration]:
    """Return how good predictions were: one entry for each group, sorted by site, part and source.

    `by` groups by site and part, by part and source ("predictor"), or by all three ("both"). Predictions whose truth is negative
    or not finite are ignored.
    """
    groups: defaultdict[_Key, list[ScoredPrediction]] = defaultdict(list)
    for each in filter(_has_truth, scored):
        site = "" if by == "predictor" else each.site
        groups[_Key(site, each.part, "" if by == "site" else each.source)].append(each)
    return [_calibration(key, groups[key]) for key in sorted(groups)]


def _calibration(key: _Key, scored: Sequence[ScoredPrediction]) -> Calibration:
    (ratio,) = quantiles((_ratio(each.truth, each.seconds) for each in scored), [0.5])
    (error,) = quantiles((abs(each.truth - each.seconds) for each in scored), [0.5])
    covered = sum(each.is_covered for each in scored) / len(scored)
    return Calibration(**key._asdict(), count=len(scored), covered=covered, ratio=ratio, error_seconds=error)


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
