"""The topics `wms.broker.jobs` (key: the job), for jobs that the resource broker is to place, and `wms.broker.placements`.

On `wms.broker.placements`, pilot submitters are told that jobs were placed. The messages are hints that services sign; the database is
authoritative. While a job stays in Checking, its BrokerJob is sent again. So a lost message delays the job by a minute. A lost message on
placements delays them by half a second.
"""

import msgspec

from wms.bounds import Count, Explanation, Moment, Name, Sequence, Word
from wms.ids import JobId

TOPIC = "wms.broker.jobs"
PLACEMENTS_TOPIC = "wms.broker.placements"


class BrokerJob(msgspec.Struct, frozen=True, kw_only=True, tag="broker-job"):
    """An order to the resource broker to place a job that is in state Checking.

    It may arrive twice or late. It is outdated if `seq` is not the number of the job's last change of state.
    """

    job_id: JobId
    seq: Sequence
    """The number, in the job's history, of the change to Checking."""
    at: Moment
    owner: Name
    owner_group: Name
    vo: Name


class PlacementFailed(msgspec.Struct, frozen=True, kw_only=True, tag="placement-failed"):
    """A placement did not start its job. The job is in Checking again, and is to be placed at the next best computing element."""

    job_id: JobId
    seq: Sequence
    """The number, in the job's history, of the change back to Checking."""
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
    """The resource broker has placed jobs, so that pilot submitters look for the placements at once. Key: the first of the jobs."""

    jobs: Count
    """How many jobs were placed together."""
    at: Moment
