"""Groups with private pilots, and groups whose members share their jobs."""

from collections.abc import Iterable
from typing import NamedTuple

from wms.matching.grouping import Requirements
from wms.matching.shares import VoGroup
from wms.site import GENERIC, PRIVATE, PilotOwner, folded


class PrivateGroups(NamedTuple):
    """The groups for which private pilots are sent, those that share their jobs, and those that have private pilots now."""

    senders: frozenset[VoGroup] = frozenset()
    """The groups for whose jobs private pilots are sent."""
    sharing: frozenset[VoGroup] = frozenset()
    """The groups whose members share their jobs."""
    present: frozenset[VoGroup] = frozenset()
    """The groups that have private pilots now."""

    def concern(self, requirements: Requirements) -> bool:
        """Return whether the group that owns the work has private pilots, or gets some for its jobs."""
        group = requirements.vo, requirements.owner_group
        return group in self.senders or group in self.present

    def with_present(self, groups: Iterable[VoGroup]) -> "PrivateGroups":
        """Return a copy in which these groups also have private pilots."""
        return self._replace(present=self.present.union(groups))

    def pilot_owner(self, requirements: Requirements) -> PilotOwner | None:
        """Return the owner of the private pilots for the work; None if generic pilots are sent."""
        group = requirements.vo, requirements.owner_group
        types = folded(requirements.pilot_types)
        if group not in self.senders or (GENERIC in types and PRIVATE not in types):
            return None
        return PilotOwner(requirements.owner_group, "" if group in self.sharing else requirements.owner)


NOBODY = PrivateGroups()
"""The value without any groups."""
