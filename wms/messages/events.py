"""`wms.job.events`: facts about jobs, for whoever wants them. Key: the job's lane, so that its facts keep their order."""

from typing import Annotated

import msgspec

from wms.bounds import Count, Moment, Name, Sequence, Text, Total, Word
from wms.ids import Epoch, JobId, TaskQueueId
from wms.job.state import Event, State

TOPIC = "wms.job.events"


class JobEvent(msgspec.Struct, frozen=True, kw_only=True, tag="job-event"):
    """The job moved. May come twice or late: `seq` rises by one a move, and a reader drops what it has seen."""

    job_id: JobId
    seq: Sequence
    at: Moment
    event: Event
    state: State
    epoch: Epoch
    owner: Name
    vo: Name
    reason: Text = ""
    text: Text = ""
    site: Name | None = None


class JobsMoved(msgspec.Struct, frozen=True, kw_only=True, tag="jobs-moved"):
    """Moves that were made in one transaction, in their order: each means what it would mean alone."""

    events: Annotated[tuple[JobEvent, ...], msgspec.Meta(max_length=10_000)]


class JobsQueued(msgspec.Struct, frozen=True, kw_only=True, tag="jobs-queued"):
    """These jobs were received and wait: the first two moves (`seq` 1 and 2) of each, told once for all of them."""

    first: JobId
    count: Count
    at: Moment
    owner: Name
    owner_group: Name
    vo: Name


class WaitReason(msgspec.Struct, frozen=True, kw_only=True, tag="wait-reason"):
    """Why the waiting jobs of a task queue wait has changed. Key: the queue, as `tq-<id>`."""

    tq_id: TaskQueueId
    at: Moment
    code: Word
    """One of `wms.job.reasons.Wait`."""
    text: Text
    waiting: Total
    owner: Name
    owner_group: Name
    vo: Name


class SweepMoved(msgspec.Struct, frozen=True, kw_only=True, tag="sweep-moved"):
    """These jobs of a sweep, none of which a pilot has had, made the same move: a JobEvent of each, told once for all."""

    first: JobId
    count: Count
    seq: Sequence
    at: Moment
    event: Event
    state: State
    owner: Name
    owner_group: Name
    vo: Name
    reason: Text = ""
    text: Text = ""


class ElementState(msgspec.Struct, frozen=True, kw_only=True, tag="element-state"):
    """A computing element, or with `ce` empty a whole site, is another way now. Key: `ce-<site>-<ce>`."""

    site: Name
    ce: Name
    at: Moment
    event: Word
    """One of `wms.provisioning.health.EVENTS`."""
    state: Word
    """One of `wms.provisioning.health.STATES`."""
    until: Moment | None = None
    reason: Text = ""
    said_by: Name = ""
    """An operator, or the service that judged."""


Fact = JobEvent | JobsMoved | JobsQueued | SweepMoved | WaitReason | ElementState

LANES = 4
"""As many as the topic has partitions."""
EVENTS_IN_A_MESSAGE = 500


def lane(job_id: JobId) -> int:
    """Return which of the lanes tells of a job."""
    return job_id % LANES
