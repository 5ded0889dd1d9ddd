"""Jobs of one array that must start together or not at all (co-allocation)."""

import msgspec

from wms.ids import JobId
from wms.job.state import ENDED, State


class GroupMember(msgspec.Struct, frozen=True):
    """One of the jobs that must start together, with its id and state."""

    job_id: JobId
    state: State
    seq: int
    """The number of the last change of state in the job's history."""


class JobGroup(msgspec.Struct, frozen=True):
    """The jobs that must start together, in the order of their ids; `size` is their number.

    The first one is the leader: the broker stores the group's steps in the leader's record.
    """

    members: tuple[GroupMember, ...]
    """The jobs of the group that are in the database, by id. A removed job is missing."""
    size: int
    leader: JobId

    def breach(self) -> str:
        """Return why these jobs can never start together, as a text; empty if they can.

        A job of the group has ended or was removed. One that is at a pilot is stopped, so that it can start anew with the others.
        """
        gone = [f"job {each.job_id} of it is {each.state}" for each in self.members if each.state in ENDED]
        if len(self.members) < self.size:
            gone.append(f"{self.size - len(self.members)} of its {self.size} jobs were removed")
        return "; ".join(gone)

    def awaited(self) -> str:
        """Return a text that lists the jobs that are not in state Checking, and so cannot be placed now; empty if there are none."""
        away = (each for each in self.members if each.state is not State.CHECKING)
        return "; ".join(f"job {each.job_id} of it is {each.state}" for each in away)
