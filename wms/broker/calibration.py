"""Calibration: predictions against what happened, by site and predictor, and the corrections that follow.

A prediction is *covered* if its interval holds the truth; of 90 % intervals, 90 % should be. The ratio of truth to prediction is
1 for a predictor that errs to neither side.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from wms.broker.knowledge import Correction
from wms.broker.prediction import UNFELT, Part, Source
from wms.broker.robust import quantiles

By: TypeAlias = Literal["site", "predictor", "both"]
RECENT: Final = 300
"""The number of latest scored predictions of a key from which its correction is learned: sites change."""


class ScoredPrediction(Struct, frozen=True, kw_only=True):
    """A prediction and the truth, in seconds."""

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
        """Whether the interval holds the truth."""
        return self.low <= self.truth <= self.high


class Calibration(Struct, frozen=True, kw_only=True):
    """How true the predictions of a part were; an empty site or source stands for all."""

    site: str
    part: Part
    source: str
    count: int
    covered: float
    """The share of intervals that hold the truth, 0 to 1."""
    ratio: float
    """The median of truth over prediction; both are counted from `-UNFELT` seconds on, so that no time can be compared."""
    error_seconds: float
    """The median of the absolute error."""


class _Key(NamedTuple):
    site: str
    part: Part
    source: str


def calibrate(scored: Iterable[ScoredPrediction], by: By = "both") -> list[Calibration]:
    """Return how true predictions were by site, by predictor (part and source) or by both, in the order of these names."""
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
    """Return how predictors err, from scored predictions, latest first: by site, part and source, and for all sites together."""
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
