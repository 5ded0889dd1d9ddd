"""A job offered to the pilot, with its description decoded once for all modules that use it."""

import msgspec

from wms.ids import AttemptId
from wms.jobdesc.array import expand
from wms.jobdesc.description import JobDescription
from wms.messages.site_inbox import OfferedJob


class DecodedOffer(msgspec.Struct, frozen=True, kw_only=True):
    """An offered job and its decoded description."""

    job: OfferedJob
    description: JobDescription
    """The description of this job; placeholders of a sweep are replaced."""
    fault: str = ""
    """The reason why this agent cannot read the description; `description` is then empty. Empty if it can."""

    @property
    def attempt_id(self) -> AttemptId:
        """Return the id of the offered attempt."""
        return self.job.attempt_id

    def slots(self, all_: int) -> int:
        """Return the least number of slots that the job takes on a pilot with `all_` slots."""
        description = self.description
        return all_ if description.whole_node else description.min_processors or description.processors


def read(job: OfferedJob) -> DecodedOffer:
    """Decode the description of an offered job; an unreadable description gives an offer with a `fault`."""
    try:
        description = msgspec.json.decode(job.description, type=JobDescription)
        own = expand(description, job.array_index or 0, job.parameters)
    except Exception as error:  # noqa: BLE001 - a description's fault is its job's
        fault = f"this agent cannot read the job's description: {error}"
        return DecodedOffer(job=job, description=JobDescription(executable=""), fault=fault)
    return DecodedOffer(job=job, description=own)
