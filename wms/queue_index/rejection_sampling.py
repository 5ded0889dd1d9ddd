"""Rejection sampling: queues are proposed by weight as a Poisson process, and accepted by the exact law of the draw.

A queue's key U/p is a random time with hazard p/(1 - p t). Up to the horizon c/(greatest p) that is at most p/(1 - c), so it
is drawn by thinning: proposals come at a rate of (sum of p)/(1 - c), each names a queue in proportion to p, and it is accepted
with (1 - c)/(1 - p t). After the horizon nothing is known but that the keys are later. With the law `proportional` the hazard is
p itself: every proposal is accepted, and the horizon is but a bound on the work.
"""

from collections.abc import Iterator
from math import inf

import numpy as np
from numpy.typing import NDArray

from wms.matching.draw_law import Law

Proposals = Iterator[tuple[int, float, float]]
"""The place of a weight, the time since the one before, and a uniform number."""

_MANY = 32
"""About as many are made before the horizon."""
_FIRST_BLOCK, _LAST_BLOCK = 64, 1024
_NO_END = 1e300


class RejectionSampling:
    """Proposals by some weights as they are; `peak` is the greatest hazard that any of them may have."""

    __slots__ = ("_cumulative", "_gap", "_size", "_whole", "horizon", "sure")

    def __init__(self, weights: NDArray[np.float64], peak: float, law: Law) -> None:
        self._cumulative = weights.cumsum()
        self._whole = float(self._cumulative[-1]) if len(weights) else 0.0
        self._size = _FIRST_BLOCK
        self.sure = 1.0
        """What is accepted whatever the time."""
        self.horizon = float(_MANY)
        self._gap = 1.0
        if law == "dirac":
            self._bound(peak)

    def _bound(self, peak: float) -> None:
        if self._whole <= 0.0 or peak <= 0.0:
            self.horizon = _NO_END
            return
        thinning = min(0.5, _MANY * peak / self._whole)
        self.sure = 1.0 - thinning
        self.horizon = thinning / peak
        self._gap = self.sure / self._whole

    def block(self, rng: np.random.Generator) -> tuple[NDArray[np.intp], list[float], list[float]]:
        """Return the next proposals: places, times since the one before, uniform numbers. None comes where nothing weighs."""
        if self._whole <= 0.0:
            return np.zeros(1, dtype=np.intp), [inf], [0.0]
        size = self._size
        self._size = min(2 * size, _LAST_BLOCK)
        places = self._cumulative.searchsorted(rng.random(size) * self._whole, side="right")
        gaps = rng.standard_exponential(size) * self._gap
        return np.minimum(places, len(self._cumulative) - 1), gaps.tolist(), rng.random(size).tolist()
