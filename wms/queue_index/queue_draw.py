"""The draw of a queue for one kind of resource: a random key for each queue of the pool that fits, and the least comes first.

All keys are drawn at once, as an array. A thousand take ten microseconds, so that no cleverer law is needed. While nothing changes,
several draws are made ahead: one first, then two, four, ... They are thrown away as soon as any weight has moved.
"""

from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wms.matching import shares
from wms.matching.draw_law import Chance

if TYPE_CHECKING:
    from wms.queue_index.queue_pools import QueuePool

Slots = NDArray[np.intp]

_AHEAD = 32
"""Draws that are made ahead at the most."""
_KEYS = 16_384
"""Keys of draws that are made ahead at the most."""
_PATIENCE = 64
"""For each so many queues that a resource sees, it lets one change of the weights pass before it looks again."""


class QueueDraw:
    """Draws queues of one pool for one kind of resource; not safe for threads."""

    __slots__ = (
        "_ahead", "_arrivals", "_at_once", "_chance", "_classes", "_emptied", "_factors", "_fit", "_now", "_parts", "_pruned",
        "_slots", "_version", "empty", "level", "pool",
    )  # fmt: skip

    def __init__(self, pool: "QueuePool", level: bytes | None = None) -> None:
        self.pool = pool
        self.level = level
        """Only these queues, by their bits, are drawn from; None for all that fit."""
        self.empty = -1
        """The value of `Tier.arrivals` at which no queue here had a job; -1 if that was never so."""
        self._ahead: list[int] = []
        """Queues that come next while nothing changes."""
        self._at_once = 1
        """Draws that are made the next time."""
        self._now = (-1, -1, -1)
        """When these were drawn: the weights, and how many queues of the pool had arrived and emptied."""
        self._chance: Chance | None = None
        self._fit = b""
        self._slots: Slots = np.empty(0, dtype=np.intp)
        """The slots of the queues that fit, with or without jobs."""
        self._pruned = False
        """Whether queues without jobs were left out. They come back when `Tier.arrivals` moves."""
        self._parts: Slots = np.empty(0, dtype=np.intp)
        """Positions in `_slots` of the queues whose share class has other queues too."""
        self._classes = self._parts
        """The share classes of the queues at these places."""
        self._factors = np.ones(0)
        """For each of the slots, the share of its class's weight that the resource sees."""
        self._version = self._arrivals = self._emptied = -1

    def next(self, fit: bytes, chance: Chance) -> int:
        """Return the slot of the queue that comes first among those whose bit is set; -1 when none of them has a job."""
        tier = self.pool.tier
        now = self.pool.source.version, tier.arrivals, tier.emptied
        if now != self._now or fit is not self._fit or chance is not self._chance:
            self._look(fit)
            self._ahead, self._at_once = [], 1
            self._now, self._chance = now, chance
        if not self._ahead:
            self._draw_ahead(chance)
        return self._ahead.pop() if self._ahead else -1

    def _draw_ahead(self, chance: Chance) -> None:
        weighing, slots = self.pool.weighing, self._slots
        if not len(slots):
            return
        shape = self._at_once, len(slots)
        self._at_once = min(2 * self._at_once, _AHEAD, 1 + _KEYS // len(slots))
        keys = (
            chance.rng.random(shape) if self.pool.law == "dirac" else chance.rng.standard_exponential(shape)
        )
        keys *= weighing.latest.values.take(slots)
        if len(self._parts):
            keys *= self._factors
        jobs = weighing.jobs.items
        self._ahead = slots.take(keys.argmin(axis=1)).tolist()
        if 0 in [jobs[slot] for slot in self._ahead]:
            # A queue without jobs comes first for one of two reasons: none has any, or its random number was 0.
            waiting = weighing.jobs.values.take(slots) > 0
            keys[:, ~waiting] = inf
            self._ahead = slots.take(keys.argmin(axis=1)).tolist() if waiting.any() else []

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
        bits = np.frombuffer(fit, dtype=np.uint8)
        if self.level is not None:
            bits = bits & np.frombuffer(self.level, dtype=np.uint8)
        bits = bits[slots >> 3] >> (slots & 7) & 1
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
