"""`wms.job.events`: facts about jobs, for whoever wants them. Key: the job, so that its facts keep their order."""

from datetime import datetime

import msgspec

from wms.ids import Epoch, JobId
from wms.job.state import Event, State

TOPIC = "wms.job.events"


class JobEvent(msgspec.Struct, frozen=True, kw_only=True, tag="job-event"):
    """The job moved. May come twice or late: `seq` rises by one a move, and a reader drops what it has seen."""

    job_id: JobId
    seq: int
    at: datetime
    event: Event
    state: State
    epoch: Epoch
    owner: str
    vo: str
    reason: str = ""
    text: str = ""
    site: str | None = None


class JobsQueued(msgspec.Struct, frozen=True, kw_only=True, tag="jobs-queued"):
    """These jobs were received and wait: the first two moves (`seq` 1 and 2) of each, told once for all of them."""

    first: JobId
    count: int
    at: datetime
    owner: str
    owner_group: str
    vo: str


Fact = JobEvent | JobsQueued
