"""What pilots are sent for: the policy requirements of the jobs that they were ordered for, kept small."""

from collections.abc import Sequence

from msgspec import Struct

from wms.matching.grouping import Requirements

GROUPS = 8
"""Groups of owners that are told by name."""


class Purpose(Struct, frozen=True, kw_only=True):
    """The most that jobs of one class ask for."""

    owner_groups: tuple[str, ...] = ()
    cpu_seconds: int = 0
    memory_mb: int = 0
    requirements: str = ""
    """The expression of the first of them that has one."""

    def with_work(self, asked: Requirements, owner_groups: Sequence[str]) -> "Purpose":
        """Return the purpose of pilots that are also sent for this work of these groups."""
        groups = dict.fromkeys([*self.owner_groups, *owner_groups])
        return Purpose(
            owner_groups=tuple(filter(None, groups))[:GROUPS],
            cpu_seconds=max(self.cpu_seconds, asked.cpu_segment),
            memory_mb=max(self.memory_mb, asked.min_ram_mb),
            requirements=self.requirements or asked.requirements,
        )
