"""Robust statistics of times and rates: medians and spreads of logarithms. Up to a tenth of outliers changes them little."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import exp, isfinite, log
from typing import Final, NamedTuple

_TENTHS: Final = 1.2815515655446004
"""The normal quantile of 90 %: 10 % of the values are above it."""
_PRIOR_WEIGHT = 3.0
"""The weight of the assumed spread, as a number of measurements that would weigh as much."""


class Typical(NamedTuple):
    """The median of positive measurements, their spread (standard deviation of the logarithm), and how many there are."""

    median: float
    spread: float
    number: int

    @property
    def of_median(self) -> float:
        """The standard error of the median, as a spread of logarithms. It shrinks with the number of measurements."""
        return float(self.spread * (1.57 / self.number) ** 0.5)


def typical(values: Iterable[float], assumed: float, offset: float = 0.0) -> Typical | None:
    """Return the median and spread of measurements; None if no measurement is valid.

    Valid ones are finite and not negative, and without `offset` above 0. `assumed` is the spread expected before anything is measured; the fewer
    measurements, the more it counts. `offset` is added to values before logarithms are taken, so that 0 is valid.
    """
    return _typical(tuple(values), assumed, offset)


# Many jobs are ranked by the same measurements.
@lru_cache(maxsize=4_096)
def _typical(values: tuple[float, ...], assumed: float, offset: float) -> Typical | None:
    logs = sorted(log(each + offset) for each in values if isfinite(each) and each >= 0 and each + offset > 0)
    if not logs:
        return None
    measured = (_quantile(logs, 0.9) - _quantile(logs, 0.1)) / (2 * _TENTHS)
    weight = len(logs) / (len(logs) + _PRIOR_WEIGHT)
    spread = (weight * measured**2 + (1 - weight) * assumed**2) ** 0.5
    return Typical(max(0.0, exp(_quantile(logs, 0.5)) - offset), spread, len(logs))


def quantiles(values: Iterable[float], shares: Sequence[float]) -> list[float]:
    """Return the interpolated quantiles of `values` for each share (0 to 1) in `shares`; values that are not finite are ignored.

    The list is empty if no value is finite.
    """
    ordered = sorted(each for each in values if isfinite(each))
    return [_quantile(ordered, share) for share in shares] if ordered else []


def mean_without_ends(values: Iterable[float]) -> float | None:
    """Return the mean of positive, finite measurements, with outliers beyond the 5 % and 95 % quantiles replaced by these quantiles.

    Other values are ignored; None if none is left. It serves for queue throughput, where one extreme run must not decide.
    """
    ordered = sorted(each for each in values if isfinite(each) and each > 0)
    if not ordered:
        return None
    low, high = _quantile(ordered, 0.05), _quantile(ordered, 0.95)
    return sum(min(max(each, low), high) for each in ordered) / len(ordered)


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
