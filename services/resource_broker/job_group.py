"""The group of a co-allocated job: the jobs of its array, which start together or not at all."""

import msgspec

from wms.ids import JobId
from wms.job.state import AT_A_PILOT, ENDED, State


class GroupMember(msgspec.Struct, frozen=True):
    """A job of a group."""

    job_id: JobId
    state: State
    seq: int
    """The number of its last move."""


class JobGroup(msgspec.Struct, frozen=True):
    """The jobs that start together, in the order of their ids; the first one is the leader, whose record is that of all."""

    members: tuple[GroupMember, ...]
    """Those that are known: a removed job is not."""
    size: int
    leader: JobId

    def breach(self) -> str:
        """Return in words why not all of them can start together any more; empty if they can."""
        gone = [f"job {each.job_id} of it is {each.state}" for each in self.members if _is_gone(each)]
        if len(self.members) < self.size:
            gone.append(f"{self.size - len(self.members)} of its {self.size} jobs were removed")
        return "; ".join(gone)

    def awaited(self) -> str:
        """Return in words which of them are not the broker's to place now; empty if all are."""
        away = (each for each in self.members if each.state is not State.CHECKING)
        return "; ".join(f"job {each.job_id} of it is {each.state}" for each in away)


def _is_gone(member: GroupMember) -> bool:
    return member.state in ENDED or member.state in AT_A_PILOT
