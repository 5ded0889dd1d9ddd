"""Pools of queues, and the draw of one of them by RAND()/weight without touching them all.

A pool has all queues of one setup, VO and CPU segment (for private pilots of one group or owner as well), whatever resource
they fit. A queue's key U/p is a random time with hazard p/(1 - p t). Up to the pool's horizon c/(greatest p) that is at most
p/(1 - c), so it is drawn by thinning: proposals come as a Poisson process of rate (sum of p)/(1 - c), each names a queue in
proportion to p, and it is accepted with (1 - c)/(1 - p t) if it has a job, fits the resource and is open to it. What is not
is a rejected proposal, and the law among the others is exact. If none was accepted before the horizon, the rest of the keys,
given that they are later, are drawn one by one (`_survey`). The few classes so heavy that the horizon would be too near are
drawn one by one at once. With the law `proportional` the hazard is p itself: every proposal that fits is accepted.

Proposals do not depend on the resource, so they are drawn by the block for all resources together.

A queue of a class that a resource sees in part weighs more to it than to others (see `shares`). A proposal that names one
that it does not see goes to one that it sees, by their weights: the class is proposed by its whole weight.
"""

from collections.abc import Iterator
from itertools import repeat
from math import inf, log
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wms.site import Resource
from wms.taskqueue import shares
from wms.taskqueue.draw import Chance, Law
from wms.taskqueue.grouping import Requirements
from wms.taskqueue.growing import Growing
from wms.taskqueue.weighing import Tier, Weighing

Proposals = Iterator[tuple[int, int, int, float, float]]
"""Slot, its byte and its bit in a view, the time since the one before, and a uniform number."""

_PROPOSALS = 32
"""About as many are made before the rest is drawn one by one."""
_SURE = 8.0
"""Of e^-8 it is, that a resource which fits all queues has none accepted before the horizon."""
_HEAVY = 12
_HEAVY_QUEUES = 48
"""When the heavy classes have more queues, drawing all one by one costs less than finding those that are seen."""
_FIRST_BLOCK, _LAST_BLOCK = 64, 1024
_NO_END = 1e300


class Versioned(Protocol):
    """Weights that are weighed anew from time to time."""

    version: int


class Pool:
    """Queues of one CPU segment and what is needed to draw from them; `source` says when their weights have changed."""

    __slots__ = (
        "_chance", "_classes", "_cumulative", "_gap", "_heavy", "_horizon", "_law", "_proposals", "_seen_classes",
        "_size", "_source", "_split", "_sure", "_version", "_weighing", "segment", "slots", "tier",
    )  # fmt: skip

    def __init__(self, segment: int, tier: Tier, weighing: Weighing, source: Versioned, law: Law) -> None:
        self.segment = segment
        self.tier = tier
        self.slots = Growing(np.int32)
        self._classes = Growing(np.int32)
        self._seen_classes: set[int] = set()
        self._weighing = weighing
        self._source = source
        self._law = law
        self._version = -1
        self._chance: Chance | None = None
        self._proposals: Proposals = iter(())
        self._cumulative = np.zeros(1)
        self._heavy: list[int] = []
        self._split = False
        """Whether the heavy classes have so many queues that no proposals are made."""
        self._sure = 1.0
        self._gap = 1.0
        self._horizon = _NO_END
        self._size = _FIRST_BLOCK

    def append(self, slot: int) -> None:
        """Add a queue."""
        self.slots.append(slot)
        number = self._weighing.classes.items[slot]
        if number not in self._seen_classes:
            self._seen_classes.add(number)
            self._classes.append(number)
        self._version = -1

    def draw(self, sight: "Sight", fit: bytes, chance: Chance) -> int:
        """Return the queue that comes first among those whose bit is set; -1 when there is none with a job."""
        if self._version != self._source.version or chance is not self._chance:
            self._prepare(chance)
        if sight.surveys or self._split:
            sight.surveys -= sight.surveys > 0
            return self._survey(sight, fit, chance, 0.0)
        time, first = self._first_heavy(fit, chance) if self._heavy else (inf, -1)
        slot = self._first_proposed(fit, chance, min(time, self._horizon))
        if slot >= 0:
            sight.missed = 0
            return slot
        if time <= self._horizon:
            return first
        sight.miss()
        return self._survey(sight, fit, chance, self._horizon, rival=(time, first))

    # --- proposals --------------------------------------------------------------------------------

    def _first_proposed(self, fit: bytes, chance: Chance, end: float) -> int:
        """Return the first proposal accepted before a time; -1 when there is none."""
        weighing, sure = self._weighing, self._sure
        jobs, mates = weighing.jobs.items, weighing.mates
        time = 0.0
        while True:
            for slot, byte, bit, gap, uniform in self._proposals:
                time += gap
                if time > end:
                    return -1
                if not jobs[slot]:
                    continue
                given = slot
                if not fit[byte] & bit:
                    if len(mates[slot]) == 1:
                        continue
                    given = weighing.mate(slot, fit, chance.uniform)
                    if given < 0:
                        continue
                if uniform < sure or uniform * (1.0 - weighing.seen_weight(given, fit) * time) < sure:
                    return given
            self._proposals = self._block(chance)

    def _block(self, chance: Chance) -> Proposals:
        whole = self._cumulative[-1]
        if whole <= 0.0:
            return repeat((0, 0, 0, inf, 0.0))
        rng, size = chance.rng, self._size
        self._size = min(2 * size, _LAST_BLOCK)
        places = self._cumulative.searchsorted(rng.random(size) * whole, side="right")
        slots = self.slots.values[np.minimum(places, len(self._cumulative) - 1)]
        gaps = rng.standard_exponential(size) * self._gap
        return zip(
            slots.tolist(),
            (slots >> 3).tolist(),
            (1 << (slots & 7)).tolist(),
            gaps.tolist(),
            rng.random(size).tolist(),
            strict=True,
        )

    def _prepare(self, chance: Chance) -> None:
        """Make the table of proposals by the weights as they are."""
        weights = self._weighing.weights.values[self.slots.values]
        self._version, self._chance = self._source.version, chance
        self._sure, self._gap, self._horizon = 1.0, 1.0, float(_PROPOSALS)
        if self._law == "dirac":
            peak = self._choose_heavy()
            weights[self._are_heavy(self.slots.values)] = 0.0
            self._set_horizon(float(weights.sum()), peak)
        members = self._weighing.class_members
        self._split = sum(len(members[number]) for number in self._heavy) > _HEAVY_QUEUES
        self._cumulative = weights.cumsum()
        self._proposals, self._size = iter(()), _FIRST_BLOCK

    def _set_horizon(self, whole: float, peak: float) -> None:
        if whole <= 0.0 or peak <= 0.0:
            self._horizon = _NO_END
            return
        thinning = min(0.5, _PROPOSALS * peak / whole)
        self._sure = 1.0 - thinning
        self._horizon = thinning / peak
        self._gap = self._sure / whole

    def _choose_heavy(self) -> float:
        """Choose the classes to be drawn one by one; return the weight of the heaviest other class."""
        numbers = self._classes.values
        weights = self._weighing.class_weights.values[numbers]
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

    def _are_heavy(self, slots: NDArray[np.int32]) -> NDArray[np.bool_]:
        classes = self._weighing.classes.values
        heavy = np.zeros(self._weighing.class_weights.length, dtype=np.bool_)
        heavy[self._heavy] = True
        chosen: NDArray[np.bool_] = heavy[classes[slots]]
        return chosen

    # --- one by one -------------------------------------------------------------------------------

    def _first_heavy(self, fit: bytes, chance: Chance) -> tuple[float, int]:
        """Return the first of the heavy queues, and its time."""
        weighing = self._weighing
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

    def _survey(
        self, sight: "Sight", fit: bytes, chance: Chance, after: float, rival: tuple[float, int] = (inf, -1)
    ) -> int:
        """Return the first of all queues that come after a time; there the heavy ones are known by the first of them."""
        time, first = rival
        if sight.fit is not fit or sight.arrivals != self.tier.arrivals:
            sight.look(fit, self._weighing)
        slots, weights = sight.slots, sight.weights(self._weighing)
        if after > 0.0 and self._heavy:
            light = ~self._are_heavy(slots)
            slots, weights = slots[light], weights[light]
        if len(slots):
            with np.errstate(divide="ignore"):
                latest = 1.0 / weights
            if self._law == "proportional":
                keys = chance.rng.standard_exponential(len(slots)) * latest
            else:
                keys = after + (1.0 - chance.rng.random(len(slots))) * (latest - after)
            place = int(keys.argmin())
            if keys.item(place) < time:
                return slots.item(place)
        return first


class Sight:
    """What one kind of resource sees of a pool."""

    __slots__ = (
        "_classes", "_numbers", "arrivals", "empty", "fit", "level", "missed", "pool", "slots", "surveys",
    )  # fmt: skip

    def __init__(self, pool: Pool, level: bytes | None = None) -> None:
        self.pool = pool
        self.level = level
        """Only these queues, by their bits, are drawn from; None for all that fit."""
        self.empty = -1
        """It found nothing in the pool when so many queues had arrived."""
        self.surveys = 0
        """So many draws are made without proposals, since these lately led to none."""
        self.missed = 0
        self.fit = b""
        self.arrivals = -1
        self.slots = np.empty(0, dtype=np.int32)
        """Those that fitted and had jobs when so many queues had arrived."""
        self._classes = self._numbers = np.empty(0, dtype=np.intp)

    def among(self, fit: bytes) -> bytes:
        """Return which of these are of its level."""
        assert self.level is not None
        return (np.frombuffer(self.level, dtype=np.uint8) & np.frombuffer(fit, dtype=np.uint8)).tobytes()

    def look(self, fit: bytes, weighing: Weighing) -> None:
        """Find the queues that fit and have jobs."""
        slots = self.pool.slots.values
        bits = np.frombuffer(fit, dtype=np.uint8)[slots >> 3] >> (slots & 7) & 1
        self.slots = slots[(bits > 0) & (weighing.jobs.values[slots] > 0)]
        self.fit, self.arrivals = fit, self.pool.tier.arrivals
        self._classes, self._numbers = np.unique(weighing.classes.values[self.slots], return_inverse=True)

    def weights(self, weighing: Weighing) -> NDArray[np.float64]:
        """Return the weights by which the resource draws what it saw, 0 for what has emptied since."""
        own = weighing.weights.values[self.slots]
        totals = weighing.class_weights.values[self._classes]
        return shares.seen_weights(own, self._numbers, totals)

    def miss(self) -> None:
        """Note that no proposal was accepted."""
        self.missed = min(self.missed + 1, 6)
        self.surveys = (1 << self.missed) - 2


class Market:
    """The pools that a resource may draw from, highest CPU segment first."""

    __slots__ = ("_law", "_source", "_weighing", "pools")

    def __init__(self, weighing: Weighing, source: Versioned, law: Law) -> None:
        self._weighing = weighing
        self._source = source
        self._law: Law = law
        self.pools: list[Pool] = []

    def append(self, slot: int, requirements: Requirements) -> None:
        """Add a queue."""
        segment = requirements.cpu_segment
        pool = next((each for each in self.pools if each.segment == segment), None)
        if pool is None:
            pool = Pool(segment, self._weighing.tier(requirements), self._weighing, self._source, self._law)
            self.pools.append(pool)
            self.pools.sort(key=lambda each: -each.segment)
        pool.append(slot)


class Pools:
    """All queues by what must be equal in a queue and a resource: the setup, the VO, and a private pilot's group or owner."""

    def __init__(self, weighing: Weighing, law: Law) -> None:
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
