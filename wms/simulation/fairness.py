"""Fairness: what each group used, compared with what its share entitles it to.

Time is cut into periods. In a period, a group *used* some core seconds. It *wanted* these and the core seconds that its waiting jobs would
have used. To find what was fair, the core seconds that all groups used are divided anew by weighted max-min. Each group gets a part by its
share, but no more than it wanted; the rest is divided among the other groups by their shares. The result is the *entitlement* of a group.

The *deviation* of a group is its use minus its entitlement, as a fraction of the use of all groups. Jain's index is computed over each
group's use divided by its entitlement: 1 if this ratio is the same for all groups, 1/n if one of n groups used everything. The index of a
simulation is the mean over its periods, weighted by use. The figures ignore *where* jobs may run: a group whose work fits only a crowded
site seems to get too little.
"""

from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


class Fairness(Struct, frozen=True):
    """Jain's index of use by entitlement, the fraction of all use that exceeded entitlements, and each group's deviation from its entitlement."""

    jain: float
    deviation: float
    by_group: tuple[float, ...]


def spent(begins: Floats, ends: Floats, cores: Floats, edges: Floats) -> Floats:
    """Return the core seconds used in each period by intervals, the n-th of which used `cores[n]` cores from `begins[n]` to `ends[n]`.

    The times `edges` separate the periods, so there is one edge more than periods. All times are in seconds.
    """
    within: Floats = np.diff(_until(begins, cores, edges) - _until(ends, cores, edges))
    return within


def _until(times: Floats, cores: Floats, edges: Floats) -> Floats:
    """Return, for each edge, the core seconds used before it, if `cores[n]` cores are used from `times[n]` on, without end."""
    order = np.argsort(times)
    sorted_times, sorted_cores = times[order], cores[order]
    count = np.searchsorted(sorted_times, edges)
    whole = np.concatenate([[0.0], np.cumsum(sorted_cores)])
    moments = np.concatenate([[0.0], np.cumsum(sorted_cores * sorted_times)])
    passed: Floats = edges * whole[count] - moments[count]
    return passed


def entitled(used: Floats, wanted: Floats, shares: Floats) -> Floats:
    """Return how many core seconds each group was entitled to in one period: the use of all groups, divided by weighted max-min.

    `used`, `wanted` (both in core seconds) and `shares` have one value for each group.
    """
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
    """Return the fairness of a simulation, from what its groups used and wanted in each period.

    `used` and `wanted` are core seconds of shape (groups, periods). `shares` has one value for each group.
    """
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
    """Return Jain's index of fairness of n values: from 1/n, if only one is not 0, to 1, if all are equal."""
    squares = float(np.square(values).sum()) * len(values)
    return float(values.sum()) ** 2 / squares if squares else 1.0
