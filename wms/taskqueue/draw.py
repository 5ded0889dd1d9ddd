"""The draw: first of many by RAND()/priority, without touching what need not be touched.

`dirac` orders by U/p with U uniform on [0, 1): two of weight 2 and 1 come first in 75 % and 25 %. `proportional` orders by
-ln(U)/p, which is first exactly in proportion to p. The smallest of n independent U/p is (1 - (1 - U)^(1/n))/p, and of n
-ln(U)/p it is -ln(U)/(n p), so n equals need one number, not n.
"""

from math import expm1, log1p
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Law = Literal["dirac", "proportional"]


def smallest(law: Law, uniform: float, count: int, weight: float) -> float:
    """Return the smallest of `count` keys of one weight, from one number uniform on [0, 1)."""
    exponential = -log1p(-uniform) / count
    return exponential / weight if law == "proportional" else -expm1(-exponential) / weight


def randoms(law: Law, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return what is to be divided by the weights to give the keys, of which the smallest comes first."""
    return rng.standard_exponential(size) if law == "proportional" else rng.random(size)
