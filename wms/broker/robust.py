"""Robust statistics of times and rates: medians and spreads of logarithms, which a tenth of outliers on either side does not move."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import exp, isfinite, log
from typing import Final, NamedTuple

_TENTHS: Final = 1.2815515655446004
"""The normal quantile of 90 %."""
_PRIOR_WEIGHT = 3.0
"""The number of measurements that weigh as much as what is assumed of the spread before any."""


class Typical(NamedTuple):
    """The median of positive measurements, the spread of one of them, and their number."""

    median: float
    spread: float
    number: int

    @property
    def of_median(self) -> float:
        """The spread of the median itself, which more measurements tell better."""
        return float(self.spread * (1.57 / self.number) ** 0.5)


def typical(values: Iterable[float], assumed: float, offset: float = 0.0) -> Typical | None:
    """Return what is typical of measurements; None if there is none that is a positive, finite number.

    `assumed` is the spread before anything was measured: the fewer there are, the more it counts. Logarithms are of the values plus
    `offset`, with which 0 is a measurement too.
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
    """Return quantiles of finite values, interpolated; an empty list if there is no such value."""
    ordered = sorted(each for each in values if isfinite(each))
    return [_quantile(ordered, share) for share in shares] if ordered else []


def mean_without_ends(values: Iterable[float]) -> float | None:
    """Return the mean of positive measurements, where each beyond the 5 % and 95 % quantiles counts as these; None without any.

    The throughput of a queue follows from the mean, not from the median, but one run of a year must not decide.
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
