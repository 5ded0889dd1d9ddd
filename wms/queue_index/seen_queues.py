"""The queues of a pool that fit one kind of resource, with a stream of random arrivals for this resource alone.

The set of queues is determined again when other queues fit, or when queues that were left out may have jobs. Their rates are set again
when weights change. The fraction of each share class that fits the resource is computed again after each change of weights if few
queues fit, else after several.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wms.matching import share_weights
from wms.queue_index.arrivals import NOBODY, Arrivals, Race, Runner

if TYPE_CHECKING:
    from wms.queue_index.queue_pools import QueuePool

Slots = NDArray[np.intp]

_PASSED_OVER = 16
"""The number of arrivals without a decision after which the rates are set anew. Queues without jobs then no longer arrive."""
_PATIENCE = 64
"""The fractions of share classes are computed again after one change of weights for each this many queues that fit."""


class SeenQueues:
    """Those task queues of one pool that fit resources of one kind, to be drawn from by weight; not thread-safe."""

    __slots__ = (
        "_arrivals", "_class_numbers", "_classes", "_counts", "_emptied", "_factors", "_fit", "_level", "_now", "_parts",
        "_pool", "_pruned", "_rates", "_slots", "_version",
    )  # fmt: skip

    def __init__(self, pool: "QueuePool", level: bytes | None = None) -> None:
        """Create it for a pool of queues. The queues that fit are an argument of `finish`.

        `level` limits them further, as one bit for each slot (row number of a queue); None: all that fit.
        """
        self._pool = pool
        self._level = level
        self._arrivals = Arrivals()
        self._now = (-1, -1, -1)
        """State at the last draw: the version of the weights, and how often queues of the pool had got a first job and given their last
        one."""
        self._fit = b""
        self._slots: Slots = np.empty(0, dtype=np.intp)
        """The slots of the queues that fit, with or without jobs."""
        self._pruned = False
        """Whether queues without jobs are left out of `_slots`. They return when any queue gets its first job."""
        self._parts = self._classes = self._class_numbers = self._slots
        """Three arrays on share classes with several queues.

        `_parts` has the positions in `_slots` of their queues. `_class_numbers` has the numbers of these classes. `_classes` has, for
        each of `_parts`, the position of its class in `_class_numbers`.
        """
        self._rates = self._factors = np.ones(0)
        """Two arrays with an entry for each slot.

        `_rates` has the weight of the queue for the resource. `_factors` has the fraction of its share class's weight that fits the
        resource.
        """
        self._version = self._counts = self._emptied = -1
        """The values of `_now` when the factors were last computed."""

    @property
    def total(self) -> float:
        """The sum of the weights that the fitting queues had at the last draw."""
        return self._arrivals.total

    def finish(self, race: Race, fit: bytes) -> None:
        """Run a race to its end among the queues whose bit is set in `fit`; its `first` is then the drawn queue."""
        tier = self._pool.tier
        now = self._pool.source.version, tier.filled, tier.emptied
        if now != self._now or fit is not self._fit:
            self._look(fit, now)
        while not race.run(self._arrivals, self._runner, _PASSED_OVER):
            self._weigh()

    def _runner(self, position: int) -> Runner:
        slot: int = self._slots.item(position)
        return (slot, self._rates.item(position)) if self._pool.weighing.jobs.items[slot] else NOBODY

    # --- what is seen -----------------------------------------------------------------------------

    def _look(self, fit: bytes, now: tuple[int, int, int]) -> None:
        version, counts, _ = now
        if fit is not self._fit or (self._pruned and counts != self._counts):
            self._find(fit)
            self._divide(now)
        elif counts != self._counts or self._is_due(now):
            self._divide(now)
        elif version != self._now[0]:
            self._weigh()
        self._now = now

    def _is_due(self, now: tuple[int, int, int]) -> bool:
        """Return whether the fractions of share classes must be computed again, since many weights have changed."""
        patience = len(self._slots) // _PATIENCE
        version, _, emptied = now
        return version - self._version > patience or (not patience and emptied != self._emptied)

    def _find(self, fit: bytes) -> None:
        slots = self._pool.slots.values
        bits = np.frombuffer(fit, dtype=np.uint8)
        if self._level is not None:
            bits = bits & np.frombuffer(self._level, dtype=np.uint8)
        bits = bits[slots >> 3] >> (slots & 7) & 1
        self._fit, self._pruned = fit, False
        self._hold(slots[bits > 0].astype(np.intp))

    def _hold(self, slots: Slots) -> None:
        weighing = self._pool.weighing
        self._slots, self._factors = slots, np.ones(len(slots))
        classes = weighing.classes.values.take(slots)
        self._parts = np.flatnonzero(weighing.class_sizes.values.take(classes) > 1)
        self._class_numbers, self._classes = np.unique(classes.take(self._parts), return_inverse=True)

    def _divide(self, now: tuple[int, int, int]) -> None:
        """Compute which fraction of each share class's weight fits the resource, and set the rates.

        If more than half of the queues have no jobs, leave these out first.
        """
        weighing = self._pool.weighing
        own = weighing.weights.values.take(self._slots)
        if 2 * np.count_nonzero(own) < len(own):
            self._pruned = True
            waiting = own > 0.0
            self._hold(self._slots[waiting])
            own = own[waiting]
        if len(self._parts):
            totals = weighing.class_weights.values.take(self._class_numbers)
            self._factors[self._parts] = share_weights.seen_parts(
                own.take(self._parts), self._classes, totals
            )
        self._version, self._counts, self._emptied = now
        self._weigh()

    def _weigh(self) -> None:
        self._rates = self._pool.weighing.weights.values.take(self._slots)
        self._rates /= self._factors
        self._arrivals.set_rates(self._rates)
