"""`wms.queue.changes`: what came into the task queues and left them, for the matchers' indexes. One partition.

A hint, never the truth: a matcher that misses one finds the job at its next load, and one that believes in a job
that is gone has its claim refused by Postgres.
"""

import msgspec

from wms.ids import JobId, TaskQueueId
from wms.taskqueue.grouping import Requirements
from wms.taskqueue.limits import Key

TOPIC = "wms.queue.changes"


class Entered(msgspec.Struct, frozen=True, kw_only=True, tag="entered"):
    """Jobs wait in a queue now. The requirements come along for a matcher that does not know the queue yet."""

    tq_id: TaskQueueId
    requirements: Requirements
    user_priority: float
    job_ids: tuple[JobId, ...]
    ranges: tuple[tuple[int, int], ...] = ()
    """Likewise jobs, those of sweeps: ranges of ids, both ends included."""


class JobsEntered(msgspec.Struct, frozen=True, kw_only=True, tag="jobs-entered"):
    """Jobs of many queues wait now. A matcher that does not know a queue reads what it requires."""

    levels: tuple[tuple[TaskQueueId, float, tuple[JobId, ...]], ...]
    """Task queue, user priority, jobs."""


class Left(msgspec.Struct, frozen=True, kw_only=True, tag="left"):
    """Jobs that wait no more and that no matcher took: killed, held, removed."""

    job_ids: tuple[JobId, ...]
    ranges: tuple[tuple[int, int], ...] = ()


class Opened(msgspec.Struct, frozen=True, kw_only=True, tag="opened"):
    """There is room again under limits that had none: (site, computing element, attribute, value) each."""

    keys: tuple[Key, ...]


class RulesChanged(msgspec.Struct, frozen=True, kw_only=True, tag="rules-changed"):
    """Shares or limits are others now: read them anew. Without it they are read anew every few seconds."""


Change = Entered | JobsEntered | Left | Opened | RulesChanged
