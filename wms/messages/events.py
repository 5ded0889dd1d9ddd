"""`wms.job.events`: facts about jobs, for any subscriber. Key: the job's lane, so that its facts keep their order."""

from typing import Annotated

import msgspec

from wms.bounds import Count, Moment, Name, Sequence, Text, Total, Word
from wms.ids import Epoch, JobId, TaskQueueId
from wms.job.state import Event, State

TOPIC = "wms.job.events"


class JobEvent(msgspec.Struct, frozen=True, kw_only=True, tag="job-event"):
    """One move of a job. It may arrive twice or late: `seq` rises by one a move, and readers drop a `seq` they have processed."""

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
    """Moves made in one transaction, in their order; each has the meaning of a single JobEvent."""

    events: Annotated[tuple[JobEvent, ...], msgspec.Meta(max_length=10_000)]


class JobsQueued(msgspec.Struct, frozen=True, kw_only=True, tag="jobs-queued"):
    """Consecutive new jobs that were received and wait: the first two moves (`seq` 1 and 2) of each, in one message."""

    first: JobId
    count: Count
    at: Moment
    owner: Name
    owner_group: Name
    vo: Name


class WaitReason(msgspec.Struct, frozen=True, kw_only=True, tag="wait-reason"):
    """A change of the reason why the jobs of a task queue wait. Key: the queue, as `tq-<id>`."""

    tq_id: TaskQueueId
    at: Moment
    code: Word
    """The reason: one of `wms.job.reasons.Wait`."""
    text: Text
    waiting: Total
    owner: Name
    owner_group: Name
    vo: Name


class SweepMoved(msgspec.Struct, frozen=True, kw_only=True, tag="sweep-moved"):
    """The same move of consecutive jobs of a sweep that no pilot has had: a JobEvent of each, in one message."""

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
    """A change of state of a computing element, or with `ce` empty of a whole site. Key: `ce-<site>-<ce>`."""

    site: Name
    ce: Name
    at: Moment
    event: Word
    """The event: one of `wms.provisioning.health.EVENTS`."""
    state: Word
    """The new state: one of `wms.provisioning.health.STATES`."""
    until: Moment | None = None
    reason: Text = ""
    said_by: Name = ""
    """The operator or the service that caused the change."""


Fact = JobEvent | JobsMoved | JobsQueued | SweepMoved | WaitReason | ElementState

LANES = 4
"""The number of lanes, equal to the partitions of the topic."""
EVENTS_IN_A_MESSAGE = 500


def lane(job_id: JobId) -> int:
    """Return the lane, from 0, that carries the facts about a job."""
    return job_id % LANES
