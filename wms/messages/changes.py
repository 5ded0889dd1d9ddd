"""`wms.queue.changes`: what came into the task queues and left them, for the matchers' indexes. One partition.

A hint, never the truth: a matcher that misses one finds the job at its next load, and one that believes in a job
that is gone has its claim refused by Postgres.
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
    """Jobs wait in a queue now. The requirements come along for a matcher that does not know the queue yet."""

    tq_id: TaskQueueId
    requirements: Requirements
    user_priority: Priority
    job_ids: Jobs
    ranges: Ranges = ()
    """Likewise jobs, those of sweeps: ranges of ids, both ends included."""


class JobsEntered(msgspec.Struct, frozen=True, kw_only=True, tag="jobs-entered"):
    """Jobs of many queues wait now. A matcher that does not know a queue reads what it requires."""

    levels: Annotated[tuple[tuple[TaskQueueId, Priority, Jobs], ...], msgspec.Meta(max_length=100_000)]
    """Task queue, user priority, jobs."""


class Left(msgspec.Struct, frozen=True, kw_only=True, tag="left"):
    """Jobs that wait no more and that no matcher took: killed, held, removed."""

    job_ids: Jobs
    ranges: Ranges = ()


class Opened(msgspec.Struct, frozen=True, kw_only=True, tag="opened"):
    """There is room again under limits that had none: (site, computing element, attribute, value) each."""

    keys: Annotated[tuple[Key, ...], msgspec.Meta(max_length=100_000)]


class RulesChanged(msgspec.Struct, frozen=True, kw_only=True, tag="rules-changed"):
    """Shares or limits are others now: read them anew. Without it they are read anew every few seconds."""


Change = Entered | JobsEntered | Left | Opened | RulesChanged
