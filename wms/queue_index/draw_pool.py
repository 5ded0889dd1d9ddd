"""Pools of queues, and the draw of one of them by RAND()/weight without touching them all.

A pool has all queues of one setup, VO and CPU segment (for private pilots of one group or owner as well), whatever resource
they fit. Queues are proposed by their weights (see `rejection_sampling`), and one is taken if it has a job, fits the resource and is open
to it, as well. What is not is a rejected proposal, and the law among the others is exact. If none was accepted before the
horizon, the rest of the keys, given that they are later, are drawn one by one. The few classes so heavy that the horizon would
be too near are drawn one by one at once; where they have many queues, each kind of resource draws for itself (see `resource_view`).

Proposals do not depend on the resource, so they are drawn by the block for all resources together.

A queue of a class that a resource sees in part weighs more to it than to others (see `shares`). A proposal that names one
that it does not see goes to one that it sees, by their weights: the class is proposed by its whole weight.
"""

from collections.abc import Iterator
from math import inf, log
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wms.matching.draw_law import Chance, Law
from wms.matching.grouping import Requirements
from wms.queue_index.growable_array import GrowableArray
from wms.queue_index.rejection_sampling import RejectionSampling
from wms.queue_index.resource_view import ResourceView
from wms.queue_index.weights import Tier, Weights
from wms.site import Resource

Proposals = Iterator[tuple[int, int, int, float, float]]
"""Slot, its byte and its bit in a view, the time since the one before, and a uniform number."""

_SURE = 8.0
"""Of e^-8 it is, that a resource which fits all queues has none accepted before the horizon."""
_HEAVY = 12
_HEAVY_QUEUES = 48
"""When the heavy classes have more queues, drawing all one by one costs less than finding those that are seen."""


class Versioned(Protocol):
    """Weights that are weighed anew from time to time."""

    version: int


class DrawPool:
    """Queues of one CPU segment and what is needed to draw from them; `source` says when their weights have changed."""

    __slots__ = (
        "_chance", "_classes", "_heavy", "_heavy_classes", "_proposals", "_seen_classes", "_source", "_split", "_thinning", "law", "segment",
        "slots", "tier", "version", "weighing",
    )  # fmt: skip

    def __init__(self, segment: int, tier: Tier, weighing: Weights, source: Versioned, law: Law) -> None:
        self.segment = segment
        self.tier = tier
        self.slots = GrowableArray(np.int32)
        self._classes = GrowableArray(np.int32)
        self._seen_classes: set[int] = set()
        self.weighing = weighing
        self._source = source
        self.law = law
        self.version = -1
        self._chance: Chance | None = None
        self._proposals: Proposals = iter(())
        self._thinning = RejectionSampling(np.zeros(1), 0.0, law)
        self._heavy: list[int] = []
        self._heavy_classes: NDArray[np.bool_] | None = None
        """By class whether it is heavy; None where none is."""
        self._split = False
        """Whether the heavy classes have so many queues that no proposals are made."""

    def append(self, slot: int) -> None:
        """Add a queue."""
        self.slots.append(slot)
        number = self.weighing.classes.items[slot]
        if number not in self._seen_classes:
            self._seen_classes.add(number)
            self._classes.append(number)
        self.version = -1

    def draw(self, sight: ResourceView, fit: bytes, chance: Chance) -> int:
        """Return the queue that comes first among those whose bit is set; -1 when there is none with a job."""
        if self.version != self._source.version or chance is not self._chance:
            self._prepare(chance)
        if sight.surveys or self._split:
            sight.surveys -= sight.surveys > 0
            return sight.first(fit, chance)
        horizon = self._thinning.horizon
        time, first = self._first_heavy(fit, chance) if self._heavy else (inf, -1)
        slot = self._first_proposed(fit, sight.reach(fit), chance, min(time, horizon))
        if slot >= 0:
            sight.missed = 0
            return slot
        if time <= horizon:
            return first
        sight.miss()
        return sight.first_after(fit, chance, horizon, (time, first), self._heavy_classes)

    # --- proposals --------------------------------------------------------------------------------

    def _first_proposed(self, fit: bytes, reach: bytes, chance: Chance, end: float) -> int:
        """Return the first proposal accepted before a time; -1 when there is none."""
        weighing, sure = self.weighing, self._thinning.sure
        jobs = weighing.jobs.items
        time = 0.0
        while True:
            for slot, byte, bit, gap, uniform in self._proposals:
                time += gap
                if time > end:
                    return -1
                if not reach[byte] & bit or not jobs[slot]:
                    continue
                given = slot
                if not fit[byte] & bit:
                    given = weighing.mate(slot, fit, chance.uniform)
                    if given < 0:
                        continue
                if uniform < sure or uniform * (1.0 - weighing.seen_weight(given, fit) * time) < sure:
                    return given
            self._proposals = self._block(chance)

    def _block(self, chance: Chance) -> Proposals:
        places, gaps, uniforms = self._thinning.block(chance.rng)
        slots = self.slots.values[places]
        bytes_, bits = (slots >> 3).tolist(), (1 << (slots & 7)).tolist()
        return zip(slots.tolist(), bytes_, bits, gaps, uniforms, strict=True)

    def _prepare(self, chance: Chance) -> None:
        """Make the table of proposals by the weights as they are."""
        weights = self.weighing.weights.values[self.slots.values]
        self.version, self._chance = self._source.version, chance
        peak, self._heavy_classes = 0.0, None
        if self.law == "dirac":
            peak = self._choose_heavy()
            if self._heavy:
                self._heavy_classes = self._marked(self._heavy)
                weights[self._heavy_classes[self.weighing.classes.values[self.slots.values]]] = 0.0
        members = self.weighing.class_members
        self._split = sum(len(members[number]) for number in self._heavy) > _HEAVY_QUEUES
        self._thinning = RejectionSampling(weights, peak, self.law)
        self._proposals = iter(())

    def _choose_heavy(self) -> float:
        """Choose the classes to be drawn one by one; return the weight of the heaviest other class."""
        numbers = self._classes.values
        weights = self.weighing.class_weights.values[numbers]
        top = (
            weights.argpartition(-_HEAVY - 1)[-_HEAVY - 1 :]
            if len(weights) > _HEAVY
            else np.arange(len(weights))
        )
        top = top[weights[top].argsort()[::-1]]
        heaviest: list[float] = weights[top].tolist()
        left = float(weights.sum())
        for heavy, weight in enumerate(heaviest):
            if weight <= 0.0 or left / (2 * weight) + heavy * log(2) >= _SURE:
                self._heavy = numbers[top[:heavy]].tolist()
                return weight
            left -= weight
        self._heavy = numbers[top].tolist()
        return 0.0

    def _marked(self, classes: list[int]) -> NDArray[np.bool_]:
        """Return by class whether it is one of these."""
        marks = np.zeros(self.weighing.class_weights.length, dtype=np.bool_)
        marks[classes] = True
        return marks

    # --- one by one -------------------------------------------------------------------------------

    def _first_heavy(self, fit: bytes, chance: Chance) -> tuple[float, int]:
        """Return the first of the heavy queues, and its time."""
        weighing = self.weighing
        time, first = inf, -1
        for number in self._heavy:
            slots, weights = weighing.seen(weighing.class_members[number], fit)
            if slots:
                scale = sum(weights) / weighing.class_weights.items[number]
                for slot, weight in zip(slots, weights, strict=True):
                    key = chance.uniform() * scale / weight
                    if key < time:
                        time, first = key, slot
        return time, first


class Market:
    """The pools that a resource may draw from, highest CPU segment first."""

    __slots__ = ("_law", "_source", "_weighing", "pools")

    def __init__(self, weighing: Weights, source: Versioned, law: Law) -> None:
        self._weighing = weighing
        self._source = source
        self._law: Law = law
        self.pools: list[DrawPool] = []

    def append(self, slot: int, requirements: Requirements) -> None:
        """Add a queue."""
        segment = requirements.cpu_segment
        pool = next((each for each in self.pools if each.segment == segment), None)
        if pool is None:
            pool = DrawPool(
                segment, self._weighing.tier(requirements), self._weighing, self._source, self._law
            )
            self.pools.append(pool)
            self.pools.sort(key=lambda each: -each.segment)
        pool.append(slot)


class Pools:
    """All queues by what must be equal in a queue and a resource: the setup, the VO, and a private pilot's group or owner."""

    def __init__(self, weighing: Weights, law: Law) -> None:
        self._weighing = weighing
        self._law: Law = law
        self._requirements: list[Requirements] = []
        self._markets: dict[tuple[str, ...], Market] = {}

    def append(self, requirements: Requirements) -> None:
        """Add the queue of the next slot."""
        slot = len(self._requirements)
        self._requirements.append(requirements)
        asked = requirements
        own = (asked.setup, asked.vo, asked.owner_group, asked.owner)
        self._markets.setdefault(own[:2], Market(self._weighing, self._weighing, self._law))
        for depth in (2, 3, 4):
            if market := self._markets.get(own[:depth]):
                market.append(slot, requirements)

    def market(self, resource: Resource) -> Market:
        """Return the pools for a resource."""
        key: tuple[str, ...] = (resource.setup, resource.vo)
        if not resource.generic:
            key += (resource.owner_group,) if resource.job_sharing else (resource.owner_group, resource.owner)
        return self._markets.get(key) or self._new_market(key)

    def _new_market(self, key: tuple[str, ...]) -> Market:
        """Gather the queues of a group or an owner, now that a private pilot asks for them."""
        found = [
            (slot, asked)
            for slot, asked in enumerate(self._requirements)
            if (asked.setup, asked.vo, asked.owner_group, asked.owner)[: len(key)] == key
        ]
        source: Versioned = self._weighing
        if found:
            source = self._weighing.group(key[1], key[2])
        market = Market(self._weighing, source, self._law)
        for slot, asked in found:
            market.append(slot, asked)
        if found:
            self._markets[key] = market
        return market
