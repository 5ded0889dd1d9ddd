"""The topics `wms.broker.jobs` (key: the job): jobs to be placed at a computing element; and `wms.broker.placements`: that some were.

The messages are hints that services sign; the database decides. The order for a job that stays in Checking is sent again, so that
a lost message costs a minute. A lost message on placements costs half a second.
"""

import msgspec

from wms.bounds import Count, Explanation, Moment, Name, Sequence, Word
from wms.ids import JobId

TOPIC = "wms.broker.jobs"
PLACEMENTS_TOPIC = "wms.broker.placements"


class BrokerJob(msgspec.Struct, frozen=True, kw_only=True, tag="broker-job"):
    """The order to the resource broker to place a job that is in Checking.

    It may arrive twice or late. Then the job has moved on, and `seq` is not the number of its last move.
    """

    job_id: JobId
    seq: Sequence
    """The number, in the job's history, of its move to Checking."""
    at: Moment
    owner: Name
    owner_group: Name
    vo: Name


class PlacementFailed(msgspec.Struct, frozen=True, kw_only=True, tag="placement-failed"):
    """A placement did not start its job. The job is in Checking again, and is to be placed at the next best computing element."""

    job_id: JobId
    seq: Sequence
    """The number, in the job's history, of its move back to Checking."""
    attempt: Count
    """The number of the failed placement, from 1."""
    site: Name
    ce: Name
    code: Word
    """The reason: one of `wms.broker.placement.PlacementFault`."""
    text: Explanation = ""
    at: Moment


ToBroker = BrokerJob | PlacementFailed


class PlacementsOrdered(msgspec.Struct, frozen=True, kw_only=True, tag="placements-ordered"):
    """The resource broker has placed jobs: a pilot submitter may look for these placements at once. Key: the first of the jobs."""

    jobs: Count
    """How many jobs were placed together."""
    at: Moment
