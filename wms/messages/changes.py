"""`wms.queue.changes`: jobs that entered or left the task queues, for the matchers' indexes. One partition.

The messages are hints; the database decides. A matcher that misses one finds the job at its next load. If a matcher tries to
claim a job that is gone, Postgres refuses the claim.
"""

from typing import Annotated, TypeAlias

import msgspec

from wms.bounds import JobRange, Priority
from wms.ids import JobId, TaskQueueId
from wms.matching.grouping import Requirements
from wms.messages.limits import Key

TOPIC = "wms.queue.changes"

Jobs: TypeAlias = Annotated[tuple[JobId, ...], msgspec.Meta(max_length=1_000_000)]
Ranges: TypeAlias = Annotated[tuple[JobRange, ...], msgspec.Meta(max_length=1_000_000)]


class Entered(msgspec.Struct, frozen=True, kw_only=True, tag="entered"):
    """Jobs that now wait in a queue, with its requirements for a matcher that does not know the queue yet."""

    tq_id: TaskQueueId
    requirements: Requirements
    user_priority: Priority
    job_ids: Jobs
    ranges: Ranges = ()
    """Further jobs that now wait, from sweeps: ranges of ids, both ends included."""


class JobsEntered(msgspec.Struct, frozen=True, kw_only=True, tag="jobs-entered"):
    """Jobs that now wait in many queues. A matcher that does not know a queue reads its requirements from the database."""

    levels: Annotated[tuple[tuple[TaskQueueId, Priority, Jobs], ...], msgspec.Meta(max_length=100_000)]
    """Task queue, user priority, jobs."""


class Left(msgspec.Struct, frozen=True, kw_only=True, tag="left"):
    """Jobs that no longer wait although no matcher took them: killed, held, removed."""

    job_ids: Jobs
    ranges: Ranges = ()


class Opened(msgspec.Struct, frozen=True, kw_only=True, tag="opened"):
    """The keys of limits that have room again: (site, computing element, attribute, value) each."""

    keys: Annotated[tuple[Key, ...], msgspec.Meta(max_length=100_000)]


class RulesChanged(msgspec.Struct, frozen=True, kw_only=True, tag="rules-changed"):
    """The notice that shares or limits have changed, so that matchers read them now instead of a few seconds later."""


Change = Entered | JobsEntered | Left | Opened | RulesChanged
