"""Filters job events for one token: keeps the state changes of the jobs of its user, group and VO, and drops repetitions.

These are the jobs that `wms jobs` lists as the user's own. Events of earlier versions name no group, and are dropped.
"""

from msgspec.structs import replace

from wms.auth.principal import Principal
from wms.bounded_cache import BoundedCache
from wms.messages.events import ElementState, Fact, JobEvent, JobsMoved, JobsQueued, SweepMoved, WaitReason

JOBS = 50_000
"""The most jobs of a user whose passed state changes are remembered.

When it is reached, the oldest quarter is forgotten, and its repetitions may pass.
"""
SEQ_LIMIT = 4_096
"""From this sequence number on, state changes of a job are passed without a check for repetition."""


class OwnEvents:
    """A filter that passes each state change of one user's own jobs once. A repetition has the same job id and the same sequence number `seq`."""

    def __init__(self, principal: Principal) -> None:
        self.owner = principal.owner
        self._principal = principal
        self._moves: BoundedCache[int, int] = BoundedCache(JOBS)
        """The state changes that passed, by job id: an integer in which bit `seq` is set for each."""
        self._ranges: BoundedCache[tuple[int, int, int], None] = BoundedCache(JOBS)

    def pick(self, fact: Fact) -> Fact | None:
        """Return the fact (a decoded job event), or the part of it about the user's jobs that did not pass before; None if nothing is left."""
        match fact:
            case JobEvent():
                return fact if self._is_new(fact) else None
            case JobsMoved():
                own = tuple(each for each in fact.events if self._is_new(each))
                return replace(fact, events=own) if own else None
            case JobsQueued():
                return fact if self._is_new_range(fact, 2) else None
            case SweepMoved():
                return fact if self._is_new_range(fact, fact.seq) else None
            case WaitReason() | ElementState():
                return None

    def _is_new(self, event: JobEvent) -> bool:
        if not self._is_own(event):
            return False
        moves, this = self._moves.get(event.job_id, 0), 1 << min(event.seq, SEQ_LIMIT)
        self._moves[event.job_id] = moves | this
        return not moves & this or event.seq >= SEQ_LIMIT

    def _is_new_range(self, fact: JobsQueued | SweepMoved, seq: int) -> bool:
        key = (fact.first, fact.count, seq)
        if not self._is_own(fact) or key in self._ranges:
            return False
        self._ranges[key] = None
        return True

    def _is_own(self, fact: JobEvent | JobsQueued | SweepMoved) -> bool:
        me = self._principal
        return (fact.owner, fact.owner_group, fact.vo) == (me.owner, me.group, me.vo)


def owners(fact: Fact | None) -> set[str]:
    """Return the owners of the jobs whose state changes a fact (a decoded job event) reports. Empty for None and for other facts."""
    match fact:
        case JobEvent() | JobsQueued() | SweepMoved():
            return {fact.owner}
        case JobsMoved():
            return {each.owner for each in fact.events}
        case _:
            return set()
