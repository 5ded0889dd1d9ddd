"""The queues of a pool that fit one kind of resource, their weights, and the draw among them.

It is used where the pool proposes no queue that fits. Few queues: one key each, by their weights at that moment. Many: one key
each on the first draw after a change, then rejection sampling, whose cost does not depend on their number.
"""

from collections.abc import Iterator
from math import inf, log1p
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wms.matching import shares
from wms.matching.draw_law import Chance
from wms.queue_index.rejection_sampling import RejectionSampling

if TYPE_CHECKING:
    from wms.queue_index.draw_pool import DrawPool

_FEW = 12

Times = NDArray[np.float64]
"""By place, the latest time at which a queue can come first: 1/weight."""


class ResourceView:
    """The queues of a pool that a kind of resource fits; not safe for threads."""

    __slots__ = (
        "_again", "_arrivals", "_chance", "_classes", "_emptied", "_few", "_fit", "_latest", "_numbers", "_proposals", "_reach",
        "_reach_of", "_slots", "_thinning", "_version", "empty", "level", "missed", "pool", "surveys",
    )  # fmt: skip

    def __init__(self, pool: "DrawPool", level: bytes | None = None) -> None:
        self.pool = pool
        self.level = level
        """Only these queues, by their bits, are drawn from; None for all that fit."""
        self.empty = -1
        """It found nothing in the pool when so many queues had arrived."""
        self.surveys = 0
        """So many draws are made without the pool's proposals, since these lately led to none."""
        self.missed = 0
        self._reach = self._reach_of = b""
        self._fit = b""
        self._arrivals = self._emptied = self._version = -1
        self._slots = np.empty(0, dtype=np.int32)
        """Those that fitted and had jobs when so many queues had arrived."""
        self._classes = self._numbers = np.empty(0, dtype=np.intp)
        self._latest: Times = np.empty(0)
        self._few: list[tuple[int, list[int]]] | None = None
        """Each class that it sees, by its number, with the slots seen; None where there are many."""
        self._again = False
        """Whether this is not the first draw by these weights."""
        self._thinning: RejectionSampling | None = None
        self._proposals: Iterator[tuple[int, float, float, float]] = iter(())
        """Slot, its weight, the time since the one before, and a uniform number."""
        self._chance: Chance | None = None

    def among(self, fit: bytes) -> bytes:
        """Return which of these are of its level."""
        assert self.level is not None
        return (np.frombuffer(self.level, dtype=np.uint8) & np.frombuffer(fit, dtype=np.uint8)).tobytes()

    def reach(self, fit: bytes) -> bytes:
        """Return the queues whose class has one that fits, a bit for each slot. Proposals of all others lead to none."""
        if fit is not self._reach_of:
            weighing = self.pool.weighing
            classes = weighing.classes.values
            fits = np.unpackbits(np.frombuffer(fit, dtype=np.uint8), count=len(classes), bitorder="little")
            reached = np.zeros(weighing.class_weights.length, dtype=np.bool_)
            reached[classes[fits.view(np.bool_)]] = True
            self._reach = np.packbits(reached[classes], bitorder="little").tobytes()
            self._reach_of = fit
        return self._reach

    def miss(self) -> None:
        """Note that no proposal of the pool was accepted."""
        self.missed = min(self.missed + 1, 6)
        self.surveys = (1 << self.missed) - 2

    # --- the draw ---------------------------------------------------------------------------------

    def first(self, fit: bytes, chance: Chance) -> int:
        """Return the queue that comes first of those whose bit is set; -1 when there is none with a job."""
        self._look(fit)
        if self._few is not None:
            return self._first_of_few(self._few, chance)
        if not self._again:
            self._again = True
            return self._first_of_all(self._slots, self._latest, chance)
        thinning = self._thinning
        if thinning is None or chance is not self._chance:
            thinning = self._prepare(chance)
        slot = self._first_proposed(thinning, chance)
        return slot if slot >= 0 else self._first_of_all(self._slots, self._latest, chance, thinning.horizon)

    def first_after(
        self,
        fit: bytes,
        chance: Chance,
        after: float,
        rival: tuple[float, int],
        heavy: NDArray[np.bool_] | None,
    ) -> int:
        """Return the queue that comes first, if none did until a time: `rival`, or one that is not of the heavy classes."""
        self._look(fit)
        if self._few is not None:
            few = self._few if heavy is None else [each for each in self._few if not heavy[each[0]]]
            return self._first_of_few(few, chance, after, rival)
        slots, latest = self._slots, self._latest
        if heavy is not None:
            light = ~heavy[self.pool.weighing.classes.values[slots]]
            slots, latest = slots[light], latest[light]
        return self._first_of_all(slots, latest, chance, after, rival)

    def _first_of_few(
        self,
        few: list[tuple[int, list[int]]],
        chance: Chance,
        after: float = 0.0,
        rival: tuple[float, int] = (inf, -1),
    ) -> int:
        """Draw a time for each, later than `after`, by the weights as they are now: nothing is kept that could grow old."""
        weighing, uniform = self.pool.weighing, chance.uniform
        weights, totals = weighing.weights.items, weighing.class_weights.items
        linear = self.pool.law == "dirac"
        time, first = rival
        for number, slots in few:
            share = totals[number]  # of a class that it sees one queue of, that queue weighs the whole
            if len(slots) > 1 and share:
                share /= sum([weights[slot] for slot in slots]) or 1.0
            for slot in slots:
                weight = weights[slot]
                if not weight:
                    continue
                latest = 1.0 / (weight * share if len(slots) > 1 else share)
                key = after + (1.0 - uniform()) * (latest - after) if linear else -log1p(-uniform()) * latest
                if key < time:
                    time, first = key, slot
        return first

    def _first_of_all(
        self,
        slots: NDArray[np.int32],
        latest: Times,
        chance: Chance,
        after: float = 0.0,
        rival: tuple[float, int] = (inf, -1),
    ) -> int:
        """Draw a time for each, given that it is later than `after`."""
        time, first = rival
        if len(slots):
            if self.pool.law == "proportional":
                keys = chance.rng.standard_exponential(len(slots)) * latest
            else:
                keys = after + (1.0 - chance.rng.random(len(slots))) * (latest - after)
            place = int(keys.argmin())
            if keys.item(place) < time:
                return slots.item(place)
        return first

    # --- proposals of its own ---------------------------------------------------------------------

    def _prepare(self, chance: Chance) -> RejectionSampling:
        weights = 1.0 / self._latest
        self._thinning = RejectionSampling(weights, float(weights.max()), self.pool.law)
        self._chance = chance
        self._proposals = iter(())
        return self._thinning

    def _first_proposed(self, thinning: RejectionSampling, chance: Chance) -> int:
        """Return the first proposal accepted before the horizon; -1 when there is none."""
        end, sure = thinning.horizon, thinning.sure
        time = 0.0
        while True:
            for slot, weight, gap, uniform in self._proposals:
                time += gap
                if time > end:
                    return -1
                if uniform < sure or uniform * (1.0 - weight * time) < sure:
                    return slot
            places, gaps, uniforms = thinning.block(chance.rng)
            slots, weights = self._slots[places], 1.0 / self._latest[places]
            self._proposals = zip(slots.tolist(), weights.tolist(), gaps, uniforms, strict=True)

    # --- what is seen -----------------------------------------------------------------------------

    def _look(self, fit: bytes) -> None:
        """Bring what is seen up to date: the queues when some came, or others fit, their weights when some were weighed anew."""
        tier = self.pool.tier
        if fit is not self._fit or tier.arrivals != self._arrivals:
            self._find(fit)
        elif self._few is not None:
            return
        elif self.pool.version == self._version and (tier.emptied == self._emptied or self._all_wait()):
            self._emptied = tier.emptied
            return
        if self._few is None:
            self._weigh()

    def _all_wait(self) -> bool:
        """Tell whether none of its queues has emptied. Others' emptying may wait for the next version, as all drift does."""
        return bool(self.pool.weighing.weights.values[self._slots].all())

    def _find(self, fit: bytes) -> None:
        """Find the queues that fit and have jobs."""
        weighing, slots = self.pool.weighing, self.pool.slots.values
        bits = np.frombuffer(fit, dtype=np.uint8)[slots >> 3] >> (slots & 7) & 1
        self._slots = slots[(bits > 0) & (weighing.jobs.values[slots] > 0)]
        self._fit, self._arrivals = fit, self.pool.tier.arrivals
        self._classes, self._numbers = np.unique(weighing.classes.values[self._slots], return_inverse=True)
        self._count()

    def _count(self) -> None:
        """List the queues by class where they are few."""
        self._few = None
        if len(self._slots) <= _FEW:
            slots: dict[int, list[int]] = {}
            for number, slot in zip(self._classes[self._numbers].tolist(), self._slots.tolist(), strict=True):
                slots.setdefault(number, []).append(slot)
            self._few = list(slots.items())

    def _weigh(self) -> None:
        """Take the weights by which the resource draws what it saw; what has emptied since weighs nothing, and is forgotten."""
        self._emptied, self._version = self.pool.tier.emptied, self.pool.version
        weighing = self.pool.weighing
        own = weighing.weights.values[self._slots]
        if not own.all():
            alive = own > 0.0
            self._slots, self._numbers, own = self._slots[alive], self._numbers[alive], own[alive]
            self._count()
        weights = shares.seen_weights(own, self._numbers, weighing.class_weights.values[self._classes])
        self._latest = 1.0 / weights
        self._again, self._thinning = False, None
