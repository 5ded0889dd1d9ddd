"""The purpose of pilots: the requirements of the jobs for which they are ordered. Batch systems may get them as hints."""

from collections.abc import Sequence

from msgspec import Struct

from wms.matching.grouping import Requirements

GROUPS = 8
"""The most owner groups in a purpose."""


class Purpose(Struct, frozen=True, kw_only=True):
    """The greatest requirements of the jobs for which pilots are ordered."""

    owner_groups: tuple[str, ...] = ()
    cpu_seconds: int = 0
    """The greatest CPU time of the jobs in seconds."""
    memory_mb: int = 0
    """The greatest memory of the jobs in MB."""
    requirements: str = ""
    """The expression of the first job that has one."""

    def with_work(self, asked: Requirements, owner_groups: Sequence[str]) -> "Purpose":
        """Return the purpose extended by this work and its owner groups."""
        groups = dict.fromkeys([*self.owner_groups, *owner_groups])
        return Purpose(
            owner_groups=tuple(filter(None, groups))[:GROUPS],
            cpu_seconds=max(self.cpu_seconds, asked.cpu_segment),
            memory_mb=max(self.memory_mb, asked.min_ram_mb),
            requirements=self.requirements or asked.requirements,
        )
