"""The groups that have private pilots, which run jobs of one group or owner only; and the groups that share their jobs."""

from collections.abc import Iterable
from typing import NamedTuple

from wms.matching.grouping import Requirements
from wms.matching.shares import VoGroup
from wms.site import GENERIC, PRIVATE, PilotOwner, folded


class PrivateGroups(NamedTuple):
    """Which groups have private pilots sent for their waiting jobs, share jobs among members, and have private pilots now."""

    senders: frozenset[VoGroup] = frozenset()
    """The groups for whose waiting jobs private pilots are sent."""
    sharing: frozenset[VoGroup] = frozenset()
    """The groups whose members share their jobs."""
    present: frozenset[VoGroup] = frozenset()
    """The groups that have private pilots now, submitted or running."""

    def concern(self, requirements: Requirements) -> bool:
        """Return whether the group that owns jobs with these requirements has private pilots now, or gets some for them."""
        group = requirements.vo, requirements.owner_group
        return group in self.senders or group in self.present

    def with_present(self, groups: Iterable[VoGroup]) -> "PrivateGroups":
        """Return a copy in which these groups also have private pilots now."""
        return self._replace(present=self.present.union(groups))

    def pilot_owner(self, requirements: Requirements) -> PilotOwner | None:
        """Return the owner or group whose private pilots run jobs with these requirements; None if generic pilots run them."""
        group = requirements.vo, requirements.owner_group
        types = folded(requirements.pilot_types)
        if group not in self.senders or (GENERIC in types and PRIVATE not in types):
            return None
        return PilotOwner(requirements.owner_group, "" if group in self.sharing else requirements.owner)


NOBODY = PrivateGroups()
"""The value for a system without private pilots."""
