"""Random draw among queues by weight, as a race: queues arrive at random times, and the first few arrivals decide.

By the law of the draw each queue of weight w gets a random key, U/w or an exponential one, and the least key is drawn. To compute
all keys takes time for each queue. Instead, let each queue arrive again and again at random times, at the rate w. All arrivals
are one stream at the rate of the sum of the weights, and the next one is of a queue with probability w/sum. A queue's first
arrival comes at a time t that is exponential with the rate w, and so is its key by the law `proportional`: the first that arrives
is drawn. By the law `dirac` the key is (1 - exp(-w t))/w, which is uniform on [0, 1/w). It grows with t and is the less the
heavier the queue. So after a time t no key comes that is less than (1 - exp(-h t))/h, where h is the heaviest weight. The race is
over when the least key so far is not above that: nearly always at the second arrival.

Arrivals of different queues are independent, and the future of a stream does not depend on its past. So arrivals of queues that
do not take part are ignored, and a race may go on in another stream where the queues that take part have equal rates.
"""

from collections.abc import Callable
from math import expm1, inf
from typing import TypeAlias

import numpy as np

from wms.matching.draw_law import Chance, Law
from wms.matching.share_weights import Floats

_AHEAD = 256
"""The most arrivals that are generated at a time."""

Runner: TypeAlias = tuple[int, float]
"""A queue that takes part in the draw, by its slot (row number in the index), and its weight for the resource.

A negative slot stands for no queue.
"""

NOBODY: Runner = (-1, 0.0)
"""The entry of an arrival that counts for no queue: no slot, and weight 0."""


class Arrivals:
    """A stream of random arrivals of task queues (a Poisson process). The rate of each queue is its weight in the draw."""

    __slots__ = ("_at_once", "_chance", "_sums", "ahead", "heaviest", "total")

    def __init__(self) -> None:
        self._sums = np.empty(0)
        self._at_once = 1
        self._chance: Chance | None = None
        self.ahead: list[int] = []
        """The next arrivals, as positions of queues in the array of rates, in reverse order: the next one is at the end."""
        self.total = 0.0
        """The sum of the arrival rates of all queues in the stream."""
        self.heaviest = 0.0
        """The highest rate that any queue can have in a race of this stream."""

    def set_rates(self, rates: Floats, heaviest: float = 0.0) -> None:
        """Set the rates at which queues arrive from now on, by position.

        `heaviest` is the highest rate that any queue can have in a race, if that is more than the largest of `rates`.
        """
        self._sums = rates.cumsum()
        self.total = self._sums.item(-1) if len(rates) else 0.0
        self.heaviest = max(heaviest, rates.max().item()) if len(rates) else 0.0
        self.ahead, self._at_once = [], 1

    def use(self, chance: Chance) -> list[int]:
        """Return the list of the next arrivals, which is never empty. The caller removes from its end what it uses.

        `chance` gives the random numbers. At least one rate must be positive.
        """
        if not self.ahead or chance is not self._chance:
            self._chance, self._at_once = chance, min(2 * self._at_once, _AHEAD)
            points = chance.rng.random(self._at_once)
            points *= self.total
            self.ahead = self._sums.searchsorted(points, "right").tolist()
        return self.ahead


class Race:
    """One draw of a queue: a race in one stream of arrivals, or in several, one after another."""

    __slots__ = ("_chance", "_is_dirac", "_least", "_time", "first")

    def __init__(self, law: Law, chance: Chance) -> None:
        self._is_dirac = law == "dirac"
        self._chance = chance
        self._time, self._least = 0.0, inf
        self.first = -1
        """The slot (row number) of the queue with the least key so far; at the end, of the drawn queue. -1: none."""

    def run(self, arrivals: Arrivals, runner: Callable[[int], Runner], most: int) -> bool:
        """Let up to `most` queues arrive; return whether the race is decided.

        `runner` returns the queue that takes part when the queue at a position of the stream arrives.
        """
        total, heaviest, exponential = arrivals.total, arrivals.heaviest, self._chance.exponential
        for _ in range(most if total else 0):
            self._time += exponential() / total
            if self._least < inf and self._least <= -expm1(-heaviest * self._time) / heaviest:
                return True
            slot, rate = runner(arrivals.use(self._chance).pop())
            if slot >= 0:
                # By the law `proportional` nobody comes earlier.
                key = -expm1(-rate * self._time) / rate if self._is_dirac else 0.0
                if key < self._least:
                    self.first, self._least = slot, key
        return not total
