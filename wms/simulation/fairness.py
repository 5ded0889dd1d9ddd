"""Fairness: what groups used against what their shares entitle them to, while they wanted it.

Time is cut into periods. In each a group used so many core seconds, and *wanted* those and what its waiting jobs would have
used had they run. What was used by all is dealt out again by weighted max-min: to each in proportion to its share, but to
none more than it wanted; the rest goes to the others, again by their shares. That is what a group was entitled to there.

The *deviation* of a group is what it used minus what it was entitled to, as a part of what all used. Jain's index is of what
each group used divided by what it was entitled to: 1 when all stand equally well, 1/n when one of n has all. Periods count by
what was used in them. It says nothing of *where* jobs may run: work that only fits a crowded site looks wronged by the others.
"""

from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


class Fairness(Struct, frozen=True):
    """Of all periods: Jain's index, the mean part of all usage that was somebody else's, and by group its mean deviation."""

    jain: float
    deviation: float
    by_group: tuple[float, ...]


def spent(begins: Floats, ends: Floats, cores: Floats, edges: Floats) -> Floats:
    """Return the core seconds of intervals in each of the periods between the edges."""
    within: Floats = np.diff(_until(begins, cores, edges) - _until(ends, cores, edges))
    return within


def _until(times: Floats, cores: Floats, edges: Floats) -> Floats:
    """Return by each edge the core seconds since all the times before it."""
    order = np.argsort(times)
    sorted_times, sorted_cores = times[order], cores[order]
    count = np.searchsorted(sorted_times, edges)
    whole = np.concatenate([[0.0], np.cumsum(sorted_cores)])
    moments = np.concatenate([[0.0], np.cumsum(sorted_cores * sorted_times)])
    passed: Floats = edges * whole[count] - moments[count]
    return passed


def entitled(used: Floats, wanted: Floats, shares: Floats) -> Floats:
    """Return what each group was entitled to of all that was used in one period: weighted max-min of what was wanted."""
    due = np.zeros_like(used)
    left = float(used.sum())
    open_ = (wanted > 0) & (shares > 0)
    while left > 1e-9 and open_.any():
        part: Floats = left * shares * open_ / shares[open_].sum()
        full = open_ & (wanted - due <= part)
        if not full.any():
            part += due
            return part
        left -= float((wanted - due)[full].sum())
        due[full] = wanted[full]
        open_ &= ~full
    return due


def fairness(used: Floats, wanted: Floats, shares: Floats) -> Fairness:
    """Judge usage and wants, both in shape (groups, periods)."""
    whole = used.sum(axis=0)
    total = float(whole.sum())
    if not total:
        return Fairness(1.0, 0.0, (0.0,) * len(shares))
    periods = np.flatnonzero(whole)
    due = np.stack([entitled(used[:, each], wanted[:, each], shares) for each in periods], axis=1)
    apart = used[:, periods] - due
    indices = [jain(used[due[:, n] > 0, each] / due[due[:, n] > 0, n]) for n, each in enumerate(periods)]
    return Fairness(
        jain=float(np.dot(indices, whole[periods]) / total),
        deviation=float(np.abs(apart).sum() / 2 / total),
        by_group=tuple((apart.sum(axis=1) / total).tolist()),
    )


def jain(values: Floats) -> float:
    """Return Jain's index of fairness."""
    squares = float(np.square(values).sum()) * len(values)
    return float(values.sum()) ** 2 / squares if squares else 1.0
