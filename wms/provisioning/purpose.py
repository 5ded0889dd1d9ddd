"""What pilots are sent for: the greatest requirements of the jobs for which they are ordered, as hints for batch systems."""

from collections.abc import Sequence

from msgspec import Struct

from wms.matching.grouping import Requirements

GROUPS = 8
"""The most groups of jobs' owners that a purpose lists."""


class Purpose(Struct, frozen=True, kw_only=True):
    """The greatest requirements of the jobs for which pilots are ordered, and some of the groups that own the jobs."""

    owner_groups: tuple[str, ...] = ()
    cpu_seconds: int = 0
    """The greatest CPU time of the jobs in seconds."""
    memory_mb: int = 0
    """The greatest memory of the jobs in MB."""
    requirements: str = ""
    """The ClassAd requirements of the first of the jobs that has some; empty if none has."""

    def with_work(self, asked: Requirements, owner_groups: Sequence[str]) -> "Purpose":
        """Return the purpose extended by jobs with these requirements, which are owned by these groups."""
        groups = dict.fromkeys([*self.owner_groups, *owner_groups])
        return Purpose(
            owner_groups=tuple(filter(None, groups))[:GROUPS],
            cpu_seconds=max(self.cpu_seconds, asked.cpu_segment),
            memory_mb=max(self.memory_mb, asked.min_ram_mb),
            requirements=self.requirements or asked.requirements,
        )
