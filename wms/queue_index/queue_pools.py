"""Pools of queues: those of one setup, VO and CPU segment, from which a resource draws, highest segment first.

Private pilots have pools of their group or owner besides. Which queues of a pool a resource fits is for `queue_draw`.
"""

from typing import Protocol

import numpy as np

from wms.matching.draw_law import Law
from wms.matching.grouping import Requirements
from wms.queue_index.growable_array import GrowableArray
from wms.queue_index.weights import Tier, Weights
from wms.site import Resource


class Versioned(Protocol):
    """Weights that are weighed anew from time to time."""

    version: int


class QueuePool:
    """Queues of one CPU segment; `source` says when their weights have changed."""

    __slots__ = ("law", "segment", "slots", "source", "tier", "weighing")

    def __init__(self, segment: int, tier: Tier, weighing: Weights, source: Versioned, law: Law) -> None:
        self.segment = segment
        self.tier = tier
        self.weighing = weighing
        self.source = source
        self.law = law
        self.slots = GrowableArray(np.int32)


class Market:
    """The pools that a resource may draw from, highest CPU segment first."""

    __slots__ = ("_law", "_source", "_weighing", "pools")

    def __init__(self, weighing: Weights, source: Versioned, law: Law) -> None:
        self._weighing = weighing
        self._source = source
        self._law: Law = law
        self.pools: list[QueuePool] = []

    def append(self, slot: int, requirements: Requirements) -> None:
        """Add a queue."""
        segment = requirements.cpu_segment
        pool = next((each for each in self.pools if each.segment == segment), None)
        if pool is None:
            pool = QueuePool(
                segment, self._weighing.tier(requirements), self._weighing, self._source, self._law
            )
            self.pools.append(pool)
            self.pools.sort(key=lambda each: -each.segment)
        pool.slots.append(slot)


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
