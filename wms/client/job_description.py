"""What one job is, as a description of its own: of a job of a sweep with its own values in it."""

import msgspec

from wms.jobdesc.array import expand
from wms.jobdesc.description import JobDescription
from wms.messages.replies import JobDetail


def description_of(detail: JobDetail) -> JobDescription:
    """Return the description that makes one job like this one."""
    described = msgspec.convert(detail.description, JobDescription)
    if detail.array_index is None:
        return described
    return expand(described, detail.array_index, detail.parameters)
