"""Pools of queues from which resources draw: the queues of one setup, VO and CPU segment; the highest segment comes first.

Private pilots, which run only jobs of their group or owner, have pools of their own. `queue_draw` decides which queues of a pool fit.
"""

from typing import Protocol

import numpy as np

from wms.matching.draw_law import Law
from wms.matching.grouping import Requirements
from wms.queue_index.arrivals import Arrivals
from wms.queue_index.growable_array import GrowableArray
from wms.queue_index.weights import Tier, Weights
from wms.site import Resource

_SMALL = 16
"""The most queues in any share class of a pool whose resources share one stream. Each draw looks at all queues of a class."""
_LARGE = 128
"""The least number of queues in a pool whose resources share one stream."""


class VersionedWeights(Protocol):
    """An owner of queue weights, with a version by which users see that weights have changed."""

    version: int
    """A number that grows each time any of the weights has changed."""


class QueuePool:
    """The task queues of one setup, VO and CPU segment, between which the draw chooses by weight.

    `weighing` holds their job counts and weights, and the version of `source` says when weights have changed. `tier` counts how often
    queues got their first job or gave their last one.
    """

    __slots__ = (
        "_arrivals", "_small_classes", "_version", "law", "segment", "slots", "source", "tier", "weighing"
    )  # fmt: skip

    def __init__(
        self, segment: int, tier: Tier, weighing: Weights, source: VersionedWeights, law: Law
    ) -> None:
        self.segment = segment
        self.tier = tier
        self.weighing = weighing
        self.source = source
        self.law = law
        self.slots = GrowableArray(np.int32)
        self._small_classes = True
        self._arrivals = Arrivals()
        self._version = -1

    def append(self, slot: int) -> None:
        """Add a task queue, given by its slot (row number in the index)."""
        self.slots.append(slot)
        number = self.weighing.classes.items[slot]
        self._small_classes &= len(self.weighing.members[number]) <= _SMALL

    @property
    def is_shared(self) -> bool:
        """Whether all resources draw from one stream of arrivals. That is faster if there are many queues and no large share class."""
        return self._small_classes and self.slots.length >= _LARGE

    def arrivals(self) -> Arrivals:
        """Return the stream of arrivals of all queues of the pool, at the rates of their present weights."""
        if self._version != self.source.version:
            self._version, slots = self.source.version, self.slots.values
            heaviest = self.weighing.class_weights.values.take(self.weighing.classes.values.take(slots))
            self._arrivals.set_rates(self.weighing.weights.values.take(slots), heaviest.max().item())
        return self._arrivals


class ResourcePools:
    """All pools of task queues from which one kind of resource may draw, one for each CPU segment, the highest first."""

    __slots__ = ("_law", "_source", "_weighing", "pools")

    def __init__(self, weighing: Weights, source: VersionedWeights, law: Law) -> None:
        self._weighing = weighing
        self._source = source
        self._law: Law = law
        self.pools: list[QueuePool] = []

    def append(self, slot: int, requirements: Requirements) -> None:
        """Add a task queue, given by its slot (row number), to the pool of its CPU segment. A missing pool is created."""
        segment = requirements.cpu_segment
        pool = next((each for each in self.pools if each.segment == segment), None)
        if pool is None:
            pool = QueuePool(
                segment, self._weighing.tier(requirements), self._weighing, self._source, self._law
            )
            self.pools.append(pool)
            self.pools.sort(key=lambda each: -each.segment)
        pool.append(slot)


class Pools:
    """All queues, by what a queue and a resource must have in common: setup, VO, and a private pilot's group or owner."""

    def __init__(self, weighing: Weights, law: Law) -> None:
        self._weighing = weighing
        self._law: Law = law
        self.requirements: list[Requirements] = []
        """The requirements of all queues, by slot."""
        self._all_resource_pools: dict[tuple[str, ...], ResourcePools] = {}

    def append(self, requirements: Requirements) -> None:
        """Add a task queue with these requirements; its slot (row number) is the number of queues added before."""
        slot = len(self.requirements)
        self.requirements.append(requirements)
        asked = requirements
        own = (asked.setup, asked.vo, asked.owner_group, asked.owner)
        self._all_resource_pools.setdefault(own[:2], ResourcePools(self._weighing, self._weighing, self._law))
        for depth in (2, 3, 4):
            if resource_pools := self._all_resource_pools.get(own[:depth]):
                resource_pools.append(slot, requirements)

    def resource_pools(self, resource: Resource) -> ResourcePools:
        """Return the pools of task queues from which a resource may draw, by its setup, VO and, for a private pilot, owner."""
        key: tuple[str, ...] = (resource.setup, resource.vo)
        if not resource.generic:
            key += (resource.owner_group,) if resource.job_sharing else (resource.owner_group, resource.owner)
        return self._all_resource_pools.get(key) or self._new_resource_pools(key)

    def _new_resource_pools(self, key: tuple[str, ...]) -> ResourcePools:
        """Return new pools with the queues of one group or owner, for private pilots.

        `key` is setup, VO, group and, if given, owner.
        """
        found = [
            (slot, asked)
            for slot, asked in enumerate(self.requirements)
            if (asked.setup, asked.vo, asked.owner_group, asked.owner)[: len(key)] == key
        ]
        source: VersionedWeights = self._weighing
        if found:
            source = self._weighing.group(key[1], key[2])
        resource_pools = ResourcePools(self._weighing, source, self._law)
        for slot, asked in found:
            resource_pools.append(slot, asked)
        if found:
            self._all_resource_pools[key] = resource_pools
        return resource_pools
