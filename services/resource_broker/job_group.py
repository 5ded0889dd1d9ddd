"""Jobs of one array that must start together or not at all (co-allocation)."""

import msgspec

from wms.ids import JobId
from wms.job.state import AT_A_PILOT, ENDED, State


class GroupMember(msgspec.Struct, frozen=True):
    """One of the jobs that must start together, with its state."""

    job_id: JobId
    state: State
    seq: int
    """The number of the job's last change of state."""


class JobGroup(msgspec.Struct, frozen=True):
    """The jobs that must start together, by id. The first one is the leader, whose record holds the broker's steps for all."""

    members: tuple[GroupMember, ...]
    """Those jobs of the group that are in the database; a removed job is missing."""
    size: int
    leader: JobId

    def breach(self) -> str:
        """Return a text on why these jobs can never start together, such as an ended or removed one; empty if they can."""
        gone = [f"job {each.job_id} of it is {each.state}" for each in self.members if _is_gone(each)]
        if len(self.members) < self.size:
            gone.append(f"{self.size - len(self.members)} of its {self.size} jobs were removed")
        return "; ".join(gone)

    def awaited(self) -> str:
        """Return a text on the jobs that the broker cannot place now, since they are not in state Checking; empty if none."""
        away = (each for each in self.members if each.state is not State.CHECKING)
        return "; ".join(f"job {each.job_id} of it is {each.state}" for each in away)


def _is_gone(member: GroupMember) -> bool:
    return member.state in ENDED or member.state in AT_A_PILOT
