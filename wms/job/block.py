"""A block: consecutive jobs of one job array that have had the same life so far. One database row stands for all of them.

An order for some of its jobs splits the block; an order for all of them moves the whole block. A job gets a row of its own
shortly before it is given to a pilot.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from wms.ids import Epoch, JobId, TaskQueueId
from wms.job.job import Job, Steps
from wms.job.state import Event, State

Range = tuple[int, int]
"""A range of job ids as (first, last), both included."""


class BlockMove(msgspec.Struct, frozen=True, kw_only=True):
    """One past state change of all jobs of a block: number in the history, time, states, event and reason."""

    seq: int
    at: datetime
    before: State | None
    event: Event
    state: State
    reason: str
    text: str = ""
    source: str


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive jobs of one job array in the same state with the same history. Their ids are `first` to `last`.

    `sweep` is the id of the array. The fields below `history` were given for the whole array at its submission.
    """

    first: JobId
    last: JobId
    sweep: JobId
    state: State
    event_seq: int
    reason: str
    changed_at: datetime
    history: tuple[BlockMove, ...]
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
        """The number of jobs in this block."""
        return self.last - self.first + 1

    def part(self, first: int, last: int) -> "Block":
        """Return a copy with only the jobs from id `first` to id `last`, both included and within this block."""
        assert self.first <= first <= last <= self.last
        return msgspec.structs.replace(self, first=JobId(first), last=JobId(last))

    def without(self, ranges: Iterable[Range]) -> Iterator["Block"]:
        """Yield the blocks that remain, in order, when the jobs of `ranges` are taken out.

        The ranges are sorted by id, do not overlap and lie within the block. Nothing is yielded if they cover it all.
        """
        free = int(self.first)
        for low, high in ranges:
            if free < low:
                yield self.part(free, low - 1)
            free = high + 1
        if free <= self.last:
            yield self.part(free, self.last)

    def around(self, ids: Iterable[int], least: int) -> Iterator[Range]:
        """Yield disjoint ranges of this block's job ids, in order, that together contain all of `ids`.

        `ids` are sorted ids of jobs of the block. Each range has `least` jobs, or fewer at the end of the block. It usually begins at one of `ids`.
        It begins right after the previous range instead, if fewer than `least` jobs would be left between the two.
        """
        free = int(self.first)
        for wanted in ids:
            if wanted < free:
                continue
            low = free if wanted - free < least else wanted
            free = min(low + least - 1, self.last) + 1
            yield low, free - 1

    def moved(self, steps: Steps, at: datetime, source: str) -> "Block":
        """Return a copy of the block with these steps added to its state and history. `steps` is not empty.

        No step may lead to a state in which a pilot has the job. `at` is the time of all steps, `source` the user or service that caused them.
        """
        moves = tuple(
            BlockMove(
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
        """Return the job `job_id` of this block as a `Job` that decisions can be made on. It has had no attempt yet."""
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
