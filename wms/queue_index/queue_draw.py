"""Draws a queue for one kind of resource from a pool of queues: at random by weight, among those that fit and have jobs.

`wms.queue_index.arrivals` has the theory. All resources of a pool share one stream of arrivals, and each ignores the queues that do not
fit it. A share class has its whole weight even for a resource that fits only some of its queues (`wms.matching.share_weights`). These queues
take the arrivals of the others in the class, too.

A resource that fits little of the pool has a stream of its own (`wms.queue_index.seen_queues`). So has each resource of a pool with few
queues or large classes. The chances are the same in either stream.
"""

from itertools import accumulate
from typing import TYPE_CHECKING

from wms.matching.draw_law import Chance
from wms.queue_index.arrivals import NOBODY, Race, Runner
from wms.queue_index.seen_queues import SeenQueues

if TYPE_CHECKING:
    from wms.queue_index.queue_pools import QueuePool

_IN_VAIN = 100
"""The most arrivals in the pool's stream that a draw uses.

If they decide nothing, the race goes on in a stream of the resource's own.
"""
_LITTLE = 1 / 16
"""A fraction of the pool's weight. A resource whose fitting queues weigh less has a stream of its own from then on."""


class QueueDraw:
    """Draws task queues at random, from one pool, for resources of one kind; not thread-safe.

    A pool holds the queues of one setup, VO and CPU segment. Resources are of one kind if the same queues fit them.
    """

    __slots__ = ("_chance", "_own", "_wanted", "empty", "level", "pool")

    def __init__(self, pool: "QueuePool", level: bytes | None = None) -> None:
        self.pool = pool
        self.level = level
        """The queues to draw from, as one bit for each slot (row number); None: all that fit."""
        self.empty = -1
        """The value of `Tier.filled` when no fitting queue had a job; -1: never.

        Until `Tier.filled` grows, no draw can find a queue.
        """
        self._wanted = b""
        self._chance: Chance | None = None
        self._own: SeenQueues | None = None
        """The fitting queues, with the resource's own stream of arrivals; None if the resource draws from the pool's stream."""

    def next(self, fit: bytes, chance: Chance) -> int:
        """Draw a queue at random, by its weight, from those that have jobs and whose bit is set in `fit`.

        `fit` has one bit for each slot (row number) of the pool, and `chance` makes the random numbers. Return the slot of the
        drawn queue, or -1 if no queue can be drawn.
        """
        race = Race(self.pool.law, chance)
        if self._own is not None:
            self._own.finish(race, fit)
        elif self.level is not None or not self.pool.is_shared:
            self._own = SeenQueues(self.pool, self.level)
            self._own.finish(race, fit)
        else:
            self._share(race, fit, chance)
        return race.first

    def _share(self, race: Race, fit: bytes, chance: Chance) -> None:
        """Run a race in the pool's stream. If that does not decide it, finish it in a stream of the resource's own.

        A resource that fits little of the pool's weight keeps its own stream for later draws.
        """
        self._wanted, self._chance = fit, chance
        arrivals = self.pool.arrivals()
        if not race.run(arrivals, self._runner, _IN_VAIN):
            own = SeenQueues(self.pool)
            own.finish(race, fit)
            if own.total < _LITTLE * arrivals.total:
                self._own = own

    def _runner(self, position: int) -> Runner:
        """Return the queue to which an arrival in the pool's stream counts, and its rate.

        `position` is that of the queue that arrived.
        """
        weighing, fit = self.pool.weighing, self._wanted
        slot: int = self.pool.slots.items[position]
        if not weighing.jobs.items[slot]:
            return NOBODY
        of_class = weighing.classes.items[slot]
        members = weighing.members[of_class]
        if len(members) > 1:
            return self._of_class(slot, of_class)
        if fit[slot >> 3] >> (slot & 7) & 1:
            return slot, weighing.weights.items[slot]
        return NOBODY

    def _of_class(self, slot: int, number: int) -> Runner:
        """Return the queue to which an arrival counts, and its rate.

        It is the queue at `slot`, which arrived, or else a fitting queue of its share class (`number`), drawn by weight. The rate is
        the queue's weight, scaled so that the fitting queues have the whole weight of the class.
        """
        weighing, fit = self.pool.weighing, self._wanted
        weights = weighing.weights.items
        seen = [
            each for each in weighing.members[number] if fit[each >> 3] >> (each & 7) & 1 and weights[each]
        ]
        if not seen:
            return NOBODY
        sums = list(accumulate(weights[each] for each in seen))
        if not fit[slot >> 3] >> (slot & 7) & 1:
            assert self._chance is not None
            point = self._chance.uniform() * sums[-1]
            slot = next((each for each, end in zip(seen, sums, strict=True) if point < end), seen[-1])
        return slot, weights[slot] * weighing.class_weights.items[number] / sums[-1]
