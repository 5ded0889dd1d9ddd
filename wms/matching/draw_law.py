"""The two laws by which a task queue is drawn at random, and random numbers for them; `wms.queue_index.queue_draw` draws.

Each queue of weight p gets a random key; the smallest key is drawn. The law `dirac` uses the key U/p with U uniform on [0, 1): of
two queues with weights 2 and 1, they come first in 75 % and 25 % of the draws. The law `proportional` uses -ln(U)/p, which comes
first exactly in proportion to p. The smallest of n independent U/p is (1 - (1 - U)^(1/n))/p. The smallest of n -ln(U)/p is
-ln(U)/(n p). So n queues of equal weight need one random number, not n.
"""

from collections.abc import Callable, Iterator
from math import expm1, log1p
from typing import TYPE_CHECKING, Literal

# The caller brings it; others need the name of a law alone, and must not load what takes long.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Law = Literal["dirac", "proportional"]

_BLOCK = 2048


class Chance:
    """Random numbers from one generator, drawn in blocks, since single draws cost ten times as much."""

    __slots__ = ("exponential", "rng", "uniform")

    def __init__(self, rng: "np.random.Generator") -> None:
        self.rng = rng
        self.uniform: Callable[[], float] = _each(rng.random).__next__
        """Returns a random number that is uniform in [0, 1)."""
        self.exponential: Callable[[], float] = _each(rng.standard_exponential).__next__
        """Returns an exponential random number with the mean 1."""


def _each(block: "Callable[[int], NDArray[np.float64]]") -> Iterator[float]:
    while True:
        yield from block(_BLOCK).tolist()


def smallest(law: Law, uniform: float, count: int, weight: float) -> float:
    """Return the smallest of `count` random keys of the same weight, from one random number `uniform` in [0, 1)."""
    exponential = -log1p(-uniform) / count
    return exponential / weight if law == "proportional" else -expm1(-exponential) / weight
