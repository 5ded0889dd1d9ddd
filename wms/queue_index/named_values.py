"""The values that the requirements of queues name, such as sites and tags. Clauses cannot distinguish values that no queue names.

Thousands of computing elements, machines and owners are thus reduced to few kinds of resource.
"""

import re
from bisect import bisect_right, insort
from collections.abc import Hashable

from wms.matching.grouping import Requirements
from wms.site import WILDCARD, Resource, folded, is_wild

_PROCESSORS = re.compile(r"([0-9]{1,4})processors")
_UNMENTIONED = "\0"
"""The replacement for values that no queue names. It differs from an absent value, which clauses ignore."""


class NamedValues:
    """The values (sites, tags, memory sizes, ...) that the requirements of queues name. `version` grows when a value is added."""

    def __init__(self) -> None:
        self.version = 0
        self._names: set[tuple[str, Hashable]] = set()
        self._memories = [0]
        self._disks = [0]
        self._processors = [1, 2]
        """The numbers of processors that tags name; 2 is there for the tag MultiProcessor."""

    def add(self, requirements: Requirements) -> None:
        """Add the values, such as sites and memory sizes, that the requirements of a task queue name."""
        asked = requirements
        whose = (asked.setup, asked.vo, asked.owner_group, asked.owner)
        names: set[tuple[str, Hashable]] = {("vo", whose[:2]), ("group", whose[:3]), ("owner", whose)}
        for kind, values in (
            ("pilot type", asked.pilot_types),
            ("site", asked.sites),
            ("site", asked.banned_sites),
            ("ce", asked.grid_ces),
            ("platform", asked.platforms),
            ("job type", asked.job_types),
            ("tag", asked.tags),
        ):
            names.update((kind, value) for value in folded(values))
        new = names - self._names
        self._names |= new
        changed = bool(new)
        changed |= _insert(self._memories, asked.min_ram_mb)
        changed |= _insert(self._disks, asked.min_disk_mb)
        for tag in folded(asked.tags):
            if count := _PROCESSORS.fullmatch(tag):
                changed |= _insert(self._processors, int(count[1]))
        self.version += changed

    def memory(self, megabytes: int) -> int:
        """Return the largest memory demand of any queue, in MB, that is at most `megabytes`; -1 for a negative number."""
        return self._memories[bisect_right(self._memories, megabytes) - 1] if megabytes >= 0 else -1

    def disk(self, megabytes: int) -> int | None:
        """Return the largest disk demand of any queue, in MB, that is at most `megabytes`.

        Return None for 0: the free disk is then unknown.
        """
        return self._disks[bisect_right(self._disks, megabytes) - 1] if megabytes > 0 else None

    def kind(self, resource: Resource) -> Hashable:
        """Return the kind of a resource: all values that clauses read but the CPU time, reduced to those that queues name.

        Resources of equal kind fit the same queues, if they have enough CPU time.
        """
        at = resource
        owner: Hashable = None
        if not at.generic:
            group = (at.setup, at.vo, at.owner_group)
            owner = self._known("group", group), at.job_sharing or self._known("owner", (*group, at.owner))
        return (
            at.setup, at.vo, owner,
            self._one("pilot type", at.pilot_type), self._one("site", at.site), self._one("ce", at.grid_ce),
            bool(at.platforms), self._some("platform", at.platforms),
            bool(at.job_types), self._some("job type", at.job_types), self._some("job type", at.banned_job_types),
            self._some("tag", at.tags), folded(at.required_tags), self.memory(at.memory_mb), self.disk(at.disk_mb),
            self._processors[bisect_right(self._processors, at.processors) - 1],
        )  # fmt: skip

    def _known(self, kind: str, value: Hashable) -> Hashable:
        return value if (kind, value) in self._names else _UNMENTIONED

    def _one(self, kind: str, value: str) -> Hashable:
        return "" if is_wild(value) else self._known(kind, value.casefold())

    def _some(self, kind: str, values: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(value for value in folded(values) if value == WILDCARD or (kind, value) in self._names)


def _insert(numbers: list[int], number: int) -> bool:
    """Insert a number into the sorted list; return whether it is new."""
    if numbers[bisect_right(numbers, number) - 1] == number:
        return False
    insort(numbers, number)
    return True
