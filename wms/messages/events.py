"""The topic `wms.job.events`: what happened to jobs, for any subscriber. Key: the job's lane, so that its events keep their order."""

from typing import Annotated

import msgspec

from wms.bounds import Count, Moment, Name, Sequence, Text, Total, Word
from wms.ids import Epoch, JobId, TaskQueueId
from wms.job.state import Event, State

TOPIC = "wms.job.events"


class JobEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="job-event"):
    """One state change of a job. It may arrive twice or late.

    `seq` rises by one with each change of the job. A reader ignores a `seq` that it has processed.
    """

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
    owner_group: Name = ""
    """The owner's group of the job. It is empty in events of earlier versions."""


class JobsMoved(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="jobs-moved"):
    """State changes of jobs by one transaction, in their order. Each means the same as a JobEvent sent alone."""

    events: Annotated[tuple[JobEvent, ...], msgspec.Meta(max_length=10_000)]


class JobsQueued(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="jobs-queued"):
    """New jobs with consecutive ids were received and wait now: the first two changes (`seq` 1 and 2) of each."""

    first: JobId
    count: Count
    at: Moment
    owner: Name
    owner_group: Name
    vo: Name


class WaitReason(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="wait-reason"):
    """The reason why the jobs of a task queue wait has changed. `waiting` is their number. Key: `tq-<id>`."""

    tq_id: TaskQueueId
    at: Moment
    code: Word
    """The reason: one of `wms.job.wait_reason_codes.WaitCode`."""
    text: Text
    waiting: Total
    owner: Name
    owner_group: Name
    vo: Name


class SweepMoved(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="sweep-moved"):
    """The same state change of consecutive jobs of a job array, none of which a pilot has had. It stands for a JobEvent of each."""

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


class ElementState(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="element-state"):
    """A computing element changed its health state, or with `ce` empty a whole site. Key: `ce-<site>-<ce>`."""

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
"""The number of lanes, among which jobs are divided to keep each job's events in order. Each is a partition of the topic."""
EVENTS_IN_A_MESSAGE = 500


def lane(job_id: JobId) -> int:
    """Return the lane, from 0 to LANES - 1, in which all events of this job are sent."""
    return job_id % LANES
