"""A job that was offered to the pilot, with its description decoded once for all who look at it."""

import msgspec

from wms.ids import AttemptId
from wms.jobdesc.array import expand
from wms.jobdesc.description import JobDescription
from wms.messages.site_inbox import OfferedJob


class DecodedOffer(msgspec.Struct, frozen=True, kw_only=True):
    """An offered job and what it asks for."""

    job: OfferedJob
    description: JobDescription
    """The job's own: of a job of a sweep with its placeholders replaced."""
    fault: str = ""
    """Why the description cannot be understood here; then `description` is empty."""

    @property
    def attempt_id(self) -> AttemptId:
        """Return the attempt that is offered."""
        return self.job.attempt_id

    def slots(self, all_: int) -> int:
        """Return how many slots of a pilot, which has so many, the job takes at least."""
        description = self.description
        return all_ if description.whole_node else description.min_processors or description.processors


def read(job: OfferedJob) -> DecodedOffer:
    """Decode the description of an offered job."""
    try:
        description = msgspec.json.decode(job.description, type=JobDescription)
        own = expand(description, job.array_index or 0, job.parameters)
    except Exception as error:  # noqa: BLE001 - a description's fault is its job's
        fault = f"this agent cannot read the job's description: {error}"
        return DecodedOffer(job=job, description=JobDescription(executable=""), fault=fault)
    return DecodedOffer(job=job, description=own)
