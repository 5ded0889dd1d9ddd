"""`wms.broker.jobs`: jobs that the broker is to place, and placements that failed. Key: the job.

The messages are hints that services sign; the database decides. A job that is still Checking when its order is due is asked
for again, so that a lost message costs a minute.
"""

import msgspec

from wms.bounds import Count, Explanation, Moment, Name, Sequence, Word
from wms.ids import JobId

TOPIC = "wms.broker.jobs"


class BrokerJob(msgspec.Struct, frozen=True, kw_only=True, tag="broker-job"):
    """A job in Checking that is to be placed. It may arrive twice or late: then the job has moved on, and `seq` is not its last move."""

    job_id: JobId
    seq: Sequence
    """The number of the job's move to Checking."""
    at: Moment
    owner: Name
    owner_group: Name
    vo: Name


class PlacementFailed(msgspec.Struct, frozen=True, kw_only=True, tag="placement-failed"):
    """A placement that did not start its job, which is Checking again and is to be placed at the next best element."""

    job_id: JobId
    seq: Sequence
    """The number of the job's move to Checking."""
    attempt: Count
    """The number of the failed placement, from 1."""
    site: Name
    ce: Name
    code: Word
    """The reason: one of `wms.broker.placement.PlacementFault`."""
    text: Explanation = ""
    at: Moment


ToBroker = BrokerJob | PlacementFailed
