"""The weights of all queues in the draw, by slot (row number in the index), kept up to date at little cost.

The weights of a group's queues are computed anew before the next draw when one of its empty queues gets a job. Other changes (means
that moved, queues that emptied) add up first: the weights are computed anew once the changes exceed one part in a hundred of the
group's whole weight. So the errors of the weights in use add up to about a hundredth of a group's share at most. And a pick only seldom
causes this computation. A queue that has emptied weighs nothing from that moment on.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from wms.matching import share_weights, shares
from wms.matching.grouping import Requirements
from wms.matching.share_weights import Floats, Ints
from wms.matching.shares import GroupShare, VoGroup
from wms.queue_index.growable_array import GrowableArray, Slots

_LAG = 0.01


class Tier:
    """Counters for the queues of one setup, VO and CPU segment. Draws see by them that queues have got jobs or become empty."""

    __slots__ = ("emptied", "filled")

    def __init__(self) -> None:
        self.emptied = 0
        """How many times a queue gave its last job. Each time, the weights of the queues of its share class change."""
        self.filled = 0
        """How many times a queue was added or got its first job. After each, a draw that found no job before may find one."""


class Group:
    """The queues of one group of a VO, between which the group's share is divided."""

    __slots__ = ("drift", "factors", "members", "name", "owners", "slots", "version", "whole")

    def __init__(self, name: VoGroup) -> None:
        self.name = name
        self.owners: dict[str, int] = {}
        self.factors: Mapping[str, float] = {}
        """The factors by which past usage changes the share, by owner; 1 for an owner that is not listed."""
        self.slots: set[int] = set()
        self.members: GrowableArray | None = None
        """The slots (row numbers) of the group's queues, in order; None until they are needed."""
        self.version = 0
        """A number that grows when the weights of the group's queues are computed anew."""
        self.whole = 0.0
        self.drift = 0.0


class Weights:
    """The number of waiting jobs and the weight in the draw of each queue, by slot. Slots are given out in order and never reused."""

    def __init__(self, group_shares: Mapping[VoGroup, GroupShare]) -> None:
        self.version = 0
        """A number that grows when the weights of any group's queues are computed anew."""
        self.jobs = GrowableArray(np.int64)
        self.weights = GrowableArray(np.float64)
        self.classes = GrowableArray(np.int32)
        self.class_weights = GrowableArray(np.float64)
        self.class_sizes = GrowableArray(np.int32)
        """How many queues, with or without jobs, each share class has; these differ only in sites, memory and disk."""
        self.members: list[list[int]] = []
        """The slots of the queues in each share class."""
        self._shares = group_shares
        self.groups: dict[VoGroup, Group] = {}
        self._group_of: list[Group] = []
        self._tiers: dict[tuple[str, str, int], Tier] = {}
        self._tier_of: list[Tier] = []
        self.dirty: set[Group] = set()
        """The groups whose queues' weights must be computed anew before the next draw."""
        self.means = GrowableArray(np.float64)
        """The mean weight of the user priorities of each queue's jobs."""
        self._owners = GrowableArray(np.int32)
        self._class_numbers: dict[Requirements, int] = {}

    def append(self, requirements: Requirements) -> None:
        """Add an empty task queue with these requirements; its slot (row number) is the number of queues added before."""
        slot = len(self._group_of)
        group = self.group(requirements.vo, requirements.owner_group)
        group.slots.add(slot)
        if group.members is not None:
            group.members.append(slot)
        self._group_of.append(group)
        tier = self.tier(requirements)
        tier.filled += 1
        self._tier_of.append(tier)
        self.jobs.append(0)
        self.weights.append(0.0)
        self.means.append(0.0)
        self._owners.append(group.owners.setdefault(requirements.owner, len(group.owners)))
        number = self._class_number(requirements)
        self.class_sizes.items[number] += 1
        self.members[number].append(slot)
        self.classes.append(number)

    def group(self, vo: str, owner_group: str) -> Group:
        """Return the group of this name in a VO; it is added if it is unknown."""
        name = (vo, owner_group)
        return self.groups.setdefault(name, Group(name))

    def tier(self, requirements: Requirements) -> Tier:
        """Return the counters for the setup, VO and CPU segment of these requirements. Missing ones are created."""
        key = (requirements.setup, requirements.vo, requirements.cpu_segment)
        return self._tiers.setdefault(key, Tier())

    def vacate(self, slot: int) -> None:
        """Remove the task queue in a slot (row number); the slot is not used again."""
        self.note(slot, 0, 0.0)
        group = self._group_of[slot]
        group.slots.remove(slot)
        group.members = None

    def follow(self, former: "Weights", slots: Slots) -> None:
        """Take over the numbers of jobs and the factors of usage of `former`. `slots` has, for each slot, the former one."""
        self.jobs.values[:] = former.jobs.values[slots]
        self.means.values[:] = former.means.values[slots]
        self.count_usage({name: group.factors for name, group in former.groups.items()})
        self.dirty.update(self.groups.values())

    def containers(self) -> Iterator[Any]:
        """Yield the lists and dicts with entries for many queues, which may be freed in parts when the weights are no longer used."""
        yield from (self.members, self._class_numbers)

    def note(self, slot: int, count: int, mean: float) -> None:
        """Set how many jobs wait in the queue of a slot, and `mean`, the mean weight of their user priorities."""
        jobs = self.jobs.items
        had = jobs[slot]
        jobs[slot] = count
        if not count:
            if had:
                self._empty(slot)
            return
        means = self.means.items
        used = means[slot]
        if not had:
            self.dirty.add(self._group_of[slot])
            self._tier_of[slot].filled += 1
            means[slot] = mean
        elif mean != used:
            means[slot] = mean
            self._drift(slot, self.weights.items[slot] * abs(mean - used) / used)

    def _empty(self, slot: int) -> None:
        weight = self.weights.items[slot]
        self.weights.items[slot] = 0.0
        self._tier_of[slot].emptied += 1
        number = self.classes.items[slot]
        of_class = self.class_weights.items
        of_class[number] = max(0.0, of_class[number] - weight)
        self._drift(slot, weight)

    def reshare(self, name: VoGroup) -> None:
        """Register that the share of a group (VO and group name) has changed. Its weights are computed anew before the next draw."""
        if name in self.groups:
            self.dirty.add(self.groups[name])

    def count_usage(self, factors: Mapping[VoGroup, Mapping[str, float]]) -> None:
        """Set the factors by which past usage changes the shares of owners, by group and owner; for others it is 1."""
        for name, group in self.groups.items():
            new = factors.get(name, {})
            if new != group.factors:
                group.factors = new
                self.dirty.add(group)

    def waiting_owners(self) -> dict[VoGroup, set[str]]:
        """Return, for each group (VO and group name), the owners that have waiting jobs."""
        found = {}
        for name, group in self.groups.items():
            slots = self._alive(group)
            numbers = set(self._owners.values[slots].tolist())
            found[name] = {owner for owner, number in group.owners.items() if number in numbers}
        return found

    def weight(self, slot: int) -> float:
        """Return the weight of a queue in the draw; 0 if it is empty.

        For a resource that fits only part of the queue's share class, the draw uses a larger weight.
        """
        self.refresh()
        return float(self.weights.items[slot])

    def refresh(self) -> None:
        """Compute the weights of the queues of all groups in `dirty` anew."""
        if self.dirty:
            for group in self.dirty:
                self._weigh(group)
            self.dirty.clear()
            self.version += 1

    def _class_number(self, requirements: Requirements) -> int:
        of_class = shares.share_class(requirements)
        number = self._class_numbers.setdefault(of_class, len(self._class_numbers))
        if number == self.class_weights.length:
            self.class_weights.append(0.0)
            self.class_sizes.append(0)
            self.members.append([])
        return number

    def _drift(self, slot: int, change: float) -> None:
        group = self._group_of[slot]
        group.drift += change
        if group.drift > _LAG * group.whole:
            self.dirty.add(group)

    def _weigh(self, group: Group) -> None:
        slots = self._alive(group)
        totals = self.class_weights.values
        classes = self.classes.values
        totals[classes[self._members(group)]] = 0.0
        share = self._shares.get(group.name) or GroupShare()
        owners = self._owners.values[slots]
        own = share_weights.weights(share, owners, self.means.values[slots], _factors(group, owners))
        self.weights.values[slots] = own
        np.add.at(totals, classes[slots], own)
        group.whole, group.drift = float(own.sum()), 0.0
        group.version += 1

    def _alive(self, group: Group) -> Slots:
        """Return the slots of a group's queues that have jobs."""
        members = self._members(group)
        return members[self.jobs.values[members] > 0]

    @staticmethod
    def _members(group: Group) -> Slots:
        if group.members is None:
            group.members = GrowableArray(np.int32)
            group.members.extend(sorted(group.slots))
        return group.members.values


def _factors(group: Group, owners: Ints) -> Floats | float:
    if not group.factors:
        return 1.0
    factors: Floats = np.array([group.factors.get(owner, 1.0) for owner in group.owners])[owners]
    return factors
