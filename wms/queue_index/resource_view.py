"""The draw of a queue for one kind of resource: a random key for each queue of the pool that fits, and the least comes first.

All keys are drawn at once, as an array. A thousand take ten microseconds, so that no cleverer law is needed.
"""

from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wms.matching import shares
from wms.matching.draw_law import Chance

if TYPE_CHECKING:
    from wms.queue_index.draw_pool import DrawPool

Slots = NDArray[np.intp]

_PATIENCE = 64
"""For each so many queues that a resource sees, it lets one change of the weights pass before it looks again."""


class ResourceView:
    """The queues of a pool that one kind of resource fits; not safe for threads."""

    __slots__ = (
        "_among", "_arrivals", "_classes", "_emptied", "_factors", "_fit", "_parts", "_pruned", "_slots", "_version",
        "empty", "level", "pool",
    )  # fmt: skip

    def __init__(self, pool: "DrawPool", level: bytes | None = None) -> None:
        self.pool = pool
        self.level = level
        """Only these queues, by their bits, are drawn from; None for all that fit."""
        self.empty = -1
        """It found nothing in the pool when so many queues had arrived."""
        self._among = (b"", b"")
        self._fit = b""
        self._slots: Slots = np.empty(0, dtype=np.intp)
        """Those that fit, whether they have jobs or not."""
        self._pruned = False
        """Whether only those are left that had jobs when so many queues had arrived."""
        self._parts: Slots = np.empty(0, dtype=np.intp)
        """The places, in the slots, of queues that share their class with others."""
        self._classes = self._parts
        """Of these, their classes."""
        self._factors = np.ones(0)
        """By place, which part of its class's weight the resource sees."""
        self._version = self._arrivals = self._emptied = -1

    def draw(self, fit: bytes, chance: Chance) -> int:
        """Return the slot of the queue that comes first among those whose bit is set; -1 when none of them has a job."""
        self._look(fit if self.level is None else self._of_level(self.level, fit))
        weighing, slots = self.pool.weighing, self._slots
        if not len(slots):
            return -1
        if self.pool.law == "dirac":
            keys = chance.rng.random(len(slots))
        else:
            keys = chance.rng.standard_exponential(len(slots))
        keys *= weighing.latest.values.take(slots)
        if len(self._parts):
            keys *= self._factors
        slot: int = slots.item(int(keys.argmin()))
        if weighing.jobs.items[slot]:
            return slot
        # Its key is the least of all for one of two reasons: no queue has jobs, or its random number was 0.
        waiting = weighing.jobs.values.take(slots) > 0
        keys[~waiting] = inf
        return slots.item(int(keys.argmin())) if waiting.any() else -1

    def _of_level(self, level: bytes, fit: bytes) -> bytes:
        """Return which of the queues that fit are of a level. The same object for the same one, by which it is known."""
        if self._among[0] is not fit:
            both = np.frombuffer(level, dtype=np.uint8) & np.frombuffer(fit, dtype=np.uint8)
            self._among = fit, both.tobytes()
        return self._among[1]

    # --- what is seen -----------------------------------------------------------------------------

    def _look(self, fit: bytes) -> None:
        """Find the queues if others fit or have jobs again; if weights have changed, see anew which part of each class it sees."""
        tier = self.pool.tier
        if fit is not self._fit or (self._pruned and tier.arrivals != self._arrivals):
            self._find(fit)
        elif tier.arrivals == self._arrivals:
            patience = len(self._slots) // _PATIENCE
            moved = self.pool.source.version - self._version
            if moved <= patience and (patience or tier.emptied == self._emptied):
                return
        self._divide()

    def _find(self, fit: bytes) -> None:
        slots = self.pool.slots.values
        bits = np.frombuffer(fit, dtype=np.uint8)[slots >> 3] >> (slots & 7) & 1
        self._fit, self._pruned = fit, False
        self._hold(slots[bits > 0].astype(np.intp))

    def _hold(self, slots: Slots) -> None:
        weighing = self.pool.weighing
        self._slots, self._factors = slots, np.ones(len(slots))
        classes = weighing.classes.values.take(slots)
        self._parts = np.flatnonzero(weighing.class_sizes.values.take(classes) > 1)
        self._classes = classes.take(self._parts)

    def _divide(self) -> None:
        """See which part of each class's weight it sees; forget queues without jobs when they are the most."""
        weighing, tier = self.pool.weighing, self.pool.tier
        own = weighing.weights.values.take(self._slots)
        if 2 * np.count_nonzero(own) < len(own):
            self._pruned = True
            waiting = own > 0.0
            self._hold(self._slots[waiting])
            own = own[waiting]
        if len(self._parts):
            self._factors[self._parts] = shares.seen_parts(
                own.take(self._parts), self._classes, weighing.class_weights.values
            )
        self._version, self._arrivals, self._emptied = self.pool.source.version, tier.arrivals, tier.emptied
