"""The weights of all queues by slot, kept fresh at little cost.

A group is weighed anew, at the next draw, when one of its empty queues gets a job, or when what its other queues have
changed since - means that moved, queues that emptied - amounts to one part in a hundred of the group's whole weight. So
the weights in use never differ from the exact ones by more than about that part of a group's share in sum, and a pick
costs the weighing of a whole group only once in many.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from wms.taskqueue import shares
from wms.taskqueue.fitting import Growing, Slots
from wms.taskqueue.grouping import Requirements
from wms.taskqueue.shares import Floats, GroupShare, VoGroup

_LAG = 0.01


class Group:
    """The queues of one group of a VO, which spread its share among them."""

    __slots__ = ("drift", "members", "name", "owners", "slots", "whole")

    def __init__(self, name: VoGroup) -> None:
        self.name = name
        self.owners: dict[str, int] = {}
        self.slots: set[int] = set()
        self.members: Slots | None = None
        """The slots as an array, made when wanted."""
        self.whole = 0.0
        self.drift = 0.0


class Table(NamedTuple):
    """What a draw needs: queues that fit and have jobs, and the inverses of their weights as the resource sees them."""

    version: int
    slots: Slots
    inverse: Floats


class Weighing:
    """How many jobs each slot's queue has, and how heavy it is. Slots are taken in order and never used twice."""

    def __init__(self, group_shares: Mapping[VoGroup, GroupShare]) -> None:
        self.version = 0
        self.jobs = Growing(np.int64)
        self._shares = group_shares
        self._groups: dict[VoGroup, Group] = {}
        self._group_of: list[Group] = []
        self._dirty: set[Group] = set()
        self._means = Growing(np.float64)
        self._weights = Growing(np.float64)
        self._owners = Growing(np.int32)
        self._classes = Growing(np.int32)
        self._class_numbers: dict[Requirements, int] = {}
        self._class_weights = Growing(np.float64)

    def append(self, requirements: Requirements) -> None:
        """Give the next slot to an empty queue."""
        name = (requirements.vo, requirements.owner_group)
        group = self._groups.setdefault(name, Group(name))
        group.slots.add(len(self._group_of))
        group.members = None
        self._group_of.append(group)
        self.jobs.append(0)
        self._means.append(0.0)
        self._weights.append(0.0)
        self._owners.append(group.owners.setdefault(requirements.owner, len(group.owners)))
        self._classes.append(self._class_number(requirements))

    def vacate(self, slot: int) -> None:
        """Note that the queue of a slot is gone."""
        self.note(slot, 0, 0.0)
        group = self._group_of[slot]
        group.slots.remove(slot)
        group.members = None

    def note(self, slot: int, count: int, mean: float) -> None:
        """Note what a queue holds now: the number of its jobs and the mean of their real priorities."""
        jobs = self.jobs.values
        had = jobs[slot]
        jobs[slot] = count
        if count:
            if not had:
                self._dirty.add(self._group_of[slot])
            means = self._means.values
            used = means.item(slot)
            if mean != used:
                means[slot] = mean
                if had:
                    self._drift(slot, self._weights.values.item(slot) * abs(mean - used) / used)
        elif had:
            weight = self._weights.values.item(slot)
            self._class_weights.values[self._classes.values[slot]] -= weight
            self._weights.values[slot] = 0.0
            self._drift(slot, weight)

    def reshare(self, name: VoGroup) -> None:
        """Note that a group's share has changed."""
        if name in self._groups:
            self._dirty.add(self._groups[name])

    def weight(self, slot: int) -> float:
        """Return the weight of a queue, 0 when empty, before it is scaled to what a resource sees."""
        self.refresh()
        return float(self._weights.values[slot])

    def refresh(self) -> None:
        """Weigh anew the groups that have changed by enough; tables of an older version are then void."""
        if self._dirty:
            for group in self._dirty:
                self._weigh(group)
            self._dirty.clear()
            self.version += 1

    def table(self, fitting: Slots) -> Table:
        """Return what to draw from among the slots that fit; the weights are fresh."""
        slots = fitting[self.jobs.values[fitting] > 0]
        own = self._weights.values[slots]
        seen = shares.seen_weights(own, self._classes.values[slots], self._class_weights.values)
        return Table(self.version, slots, 1.0 / seen)

    def _class_number(self, requirements: Requirements) -> int:
        of_class = shares.share_class(requirements)
        number = self._class_numbers.setdefault(of_class, len(self._class_numbers))
        if number == self._class_weights.length:
            self._class_weights.append(0.0)
        return number

    def _drift(self, slot: int, change: float) -> None:
        group = self._group_of[slot]
        group.drift += change
        if group.drift > _LAG * group.whole:
            self._dirty.add(group)

    def _weigh(self, group: Group) -> None:
        if group.members is None:
            group.members = np.array(sorted(group.slots), dtype=np.int32)
        totals = self._class_weights.values
        totals[self._classes.values[group.members]] = 0.0
        slots = group.members[self.jobs.values[group.members] > 0]
        share = self._shares.get(group.name) or GroupShare()
        own = shares.weights(share, self._owners.values[slots], self._means.values[slots])
        self._weights.values[slots] = own
        np.add.at(totals, self._classes.values[slots], own)
        group.whole, group.drift = float(own.sum()), 0.0
