"""Filters facts about jobs: only state changes of one user's jobs remain, and each only once."""

from msgspec.structs import replace

from wms.auth.principal import Principal
from wms.bounded_cache import BoundedCache
from wms.messages.events import ElementState, Fact, JobEvent, JobsMoved, JobsQueued, SweepMoved, WaitReason

JOBS = 50_000
"""The greatest number of jobs of a user for which sent state changes are remembered."""
SEQ_LIMIT = 4_096
"""The number of a state change of a job from which on repetitions are not recognised."""


class OwnEvents:
    """A filter for state changes of one user's own jobs. A repetition is recognised by its job and its `seq`."""

    def __init__(self, principal: Principal) -> None:
        self.owner = principal.owner
        self._principal = principal
        self._moves: BoundedCache[int, int] = BoundedCache(JOBS)
        """The state changes that passed, by job: a number whose bit `seq` is set."""
        self._ranges: BoundedCache[tuple[int, int, int], None] = BoundedCache(JOBS)

    def pick(self, fact: Fact) -> Fact | None:
        """Return the part of the fact that is the user's own and new; None if nothing is left."""
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
        me = self._principal
        if (event.owner, event.vo) != (me.owner, me.vo):
            return False
        moves, this = self._moves.get(event.job_id, 0), 1 << min(event.seq, SEQ_LIMIT)
        self._moves[event.job_id] = moves | this
        return not moves & this or event.seq >= SEQ_LIMIT

    def _is_new_range(self, fact: JobsQueued | SweepMoved, seq: int) -> bool:
        me = self._principal
        key = (fact.first, fact.count, seq)
        if (fact.owner, fact.owner_group, fact.vo) != (me.owner, me.group, me.vo) or key in self._ranges:
            return False
        self._ranges[key] = None
        return True


def owners(fact: Fact | None) -> set[str]:
    """Return the owners whose moves a fact tells."""
    match fact:
        case JobEvent() | JobsQueued() | SweepMoved():
            return {fact.owner}
        case JobsMoved():
            return {each.owner for each in fact.events}
        case _:
            return set()
