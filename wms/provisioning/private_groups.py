"""Groups with private pilots, and groups whose members share their jobs."""

from collections.abc import Iterable
from typing import NamedTuple

from wms.matching.grouping import Requirements
from wms.matching.shares import VoGroup
from wms.site import GENERIC, PRIVATE, PilotOwner, folded


class PrivateGroups(NamedTuple):
    """The groups of VOs for which private pilots are sent, those that share their jobs, and those that have private pilots."""

    senders: frozenset[VoGroup] = frozenset()
    sharing: frozenset[VoGroup] = frozenset()
    present: frozenset[VoGroup] = frozenset()

    def concern(self, requirements: Requirements) -> bool:
        """Tell whether the group of the work matters."""
        group = requirements.vo, requirements.owner_group
        return group in self.senders or group in self.present

    def with_present(self, groups: Iterable[VoGroup]) -> "PrivateGroups":
        """Return it with private pilots of these groups, which are about to be sent."""
        return self._replace(present=self.present.union(groups))

    def pilot_owner(self, requirements: Requirements) -> PilotOwner | None:
        """Return the owner of the private pilots for some work; None: generic pilots are sent."""
        group = requirements.vo, requirements.owner_group
        types = folded(requirements.pilot_types)
        if group not in self.senders or (GENERIC in types and PRIVATE not in types):
            return None
        return PilotOwner(requirements.owner_group, "" if group in self.sharing else requirements.owner)


NOBODY = PrivateGroups()
