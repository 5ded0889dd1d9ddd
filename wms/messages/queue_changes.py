"""The topic `wms.queue.changes`: jobs that entered or left the task queues, for the matchers' queue indexes. One partition.

The messages are hints; the database is authoritative. A matcher that misses one finds the job when it next loads its index. If a
matcher tries to claim a job that no longer waits, the database refuses.
"""

from typing import Annotated, TypeAlias

import msgspec

from wms.bounds import JobRange, Priority
from wms.ids import JobId, TaskQueueId
from wms.matching.grouping import Requirements
from wms.messages.limits import CounterKey

TOPIC = "wms.queue.changes"

Jobs: TypeAlias = Annotated[tuple[JobId, ...], msgspec.Meta(max_length=1_000_000)]
Ranges: TypeAlias = Annotated[tuple[JobRange, ...], msgspec.Meta(max_length=1_000_000)]


class Entered(msgspec.Struct, frozen=True, kw_only=True, tag="entered"):
    """Jobs that now wait in one task queue. The queue's requirements are included for matchers that do not know it yet."""

    tq_id: TaskQueueId
    requirements: Requirements
    user_priority: Priority
    job_ids: Jobs
    ranges: Ranges = ()
    """Ranges of the ids of further waiting jobs, which are in job arrays; both ends included."""


class JobsEntered(msgspec.Struct, frozen=True, kw_only=True, tag="jobs-entered"):
    """Jobs that now wait in many task queues. A matcher that does not know a queue reads its requirements from the database."""

    levels: Annotated[tuple[tuple[TaskQueueId, Priority, Jobs], ...], msgspec.Meta(max_length=100_000)]
    """For each task queue and user priority: the ids of the jobs."""


class Left(msgspec.Struct, frozen=True, kw_only=True, tag="left"):
    """Jobs that no longer wait, although no matcher gave them to a pilot: they were killed, held or removed."""

    job_ids: Jobs
    ranges: Ranges = ()


class Opened(msgspec.Struct, frozen=True, kw_only=True, tag="opened"):
    """The limits that have room again, by the keys of their counters.

    Matchers look again at the jobs that these limits kept back.
    """

    keys: Annotated[tuple[CounterKey, ...], msgspec.Meta(max_length=100_000)]


class RulesChanged(msgspec.Struct, frozen=True, kw_only=True, tag="rules-changed"):
    """The shares of groups or the limits have changed. Matchers read them at once, instead of at the next regular time."""


Change = Entered | JobsEntered | Left | Opened | RulesChanged
