"""A job offered to the pilot, with its description decoded."""

import msgspec

from wms.ids import AttemptId
from wms.jobdesc.array import expand
from wms.jobdesc.description import JobDescription
from wms.jobdesc.gpus import gpus_needed
from wms.messages.site_inbox import OfferedJob


class DecodedOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A job as the matcher offered it to the pilot, with its decoded description."""

    job: OfferedJob
    description: JobDescription
    """The description of this one job. If it belongs to a job array, its own index and parameters are filled in."""
    fault: str = ""
    """Why this agent cannot read the description; the field `description` is then a placeholder. Empty if it can."""

    @property
    def attempt_id(self) -> AttemptId:
        """The id of the offered attempt: job id and epoch (the number of times that the job was given to a pilot)."""
        return self.job.attempt_id

    def slots(self, all_: int) -> int:
        """Return the least number of slots that the job takes on a pilot that has `all_` slots."""
        description = self.description
        return all_ if description.whole_node else description.min_processors or description.processors

    @property
    def gpus(self) -> int:
        """The number of GPUs that the job takes: those that it asks for, or that its requirements do."""
        return self.description.gpus or gpus_needed(self.description.requirements)


def read(job: OfferedJob) -> DecodedOffer:
    """Return an offered job with its description decoded. If that cannot be read, the result has a `fault`; nothing is raised."""
    try:
        description = msgspec.json.decode(job.description, type=JobDescription)
        own = expand(description, job.array_index or 0, job.parameters)
    except Exception as error:  # noqa: BLE001 - a description's fault is its job's
        fault = f"this agent cannot read the job's description: {error}"
        return DecodedOffer(job=job, description=JobDescription(executable=""), fault=fault)
    return DecodedOffer(job=job, description=own)
