"""A block: jobs of one sweep with consecutive ids that share their whole history and have no rows of their own.

An order for some of its jobs cuts the block; an order for all of them moves it as one. A job leaves its block for a row of its
own shortly before it is given to a pilot.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from wms.ids import Epoch, JobId, TaskQueueId
from wms.job.job import Job, Steps
from wms.job.state import Event, State

Range = tuple[int, int]
"""A range of ids, both ends included."""


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """A move that each job of a block has made."""

    seq: int
    at: datetime
    before: State | None
    event: Event
    state: State
    reason: str
    text: str = ""
    source: str


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs `first` to `last`; the fields below `history` are those of their sweep."""

    first: JobId
    last: JobId
    sweep: JobId
    state: State
    event_seq: int
    reason: str
    changed_at: datetime
    history: tuple[Moved, ...]
    description_id: int
    tq_id: TaskQueueId
    owner: str
    owner_group: str
    vo: str
    name: str
    user_priority: float
    max_attempts: int
    submitted_at: datetime
    parameters: tuple[str, ...]
    job_group: str = ""

    @property
    def size(self) -> int:
        """The number of jobs in the block."""
        return self.last - self.first + 1

    def part(self, first: int, last: int) -> "Block":
        """Return the jobs `first` to `last` as a block of their own."""
        assert self.first <= first <= last <= self.last
        return msgspec.structs.replace(self, first=JobId(first), last=JobId(last))

    def without(self, ranges: Iterable[Range]) -> Iterator["Block"]:
        """Yield the blocks that remain without these ranges of jobs, which are in order and do not overlap."""
        free = int(self.first)
        for low, high in ranges:
            if free < low:
                yield self.part(free, low - 1)
            free = high + 1
        if free <= self.last:
            yield self.part(free, self.last)

    def around(self, ids: Iterable[int], least: int) -> Iterator[Range]:
        """Yield ranges of the block, in order and without overlap, that hold all these ids of its jobs, given in order.

        A range is `least` jobs long, or shorter at the block's end. It begins at its id, or, if fewer than `least` jobs lie
        between, at the end of the range before it or at the block's head, so that no small remainders are left.
        """
        free = int(self.first)
        for wanted in ids:
            if wanted < free:
                continue
            low = free if wanted - free < least else wanted
            free = min(low + least - 1, self.last) + 1
            yield low, free - 1

    def moved(self, steps: Steps, at: datetime, source: str) -> "Block":
        """Return the block after these steps, none of which leads to a pilot."""
        moves = tuple(
            Moved(
                seq=self.event_seq + n,
                at=at,
                before=step.before,
                event=step.event,
                state=step.state,
                reason=step.reason.code,
                text=step.reason.text,
                source=source,
            )
            for n, step in enumerate(steps, start=1)
        )
        return msgspec.structs.replace(
            self,
            state=moves[-1].state,
            event_seq=moves[-1].seq,
            reason=moves[-1].reason,
            changed_at=at,
            history=(*self.history, *moves),
        )

    def job(self, job_id: JobId) -> Job:
        """Return one job of the block, with the facts that decisions need."""
        return Job(
            job_id=job_id,
            state=self.state,
            epoch=Epoch(0),
            event_seq=self.event_seq,
            attempts=0,
            max_attempts=self.max_attempts,
            stop_requested="",
            tq_id=self.tq_id,
            user_priority=self.user_priority,
            owner=self.owner,
            owner_group=self.owner_group,
            vo=self.vo,
        )
