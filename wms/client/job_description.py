"""The description of a single job, made from its details. For a job of an array it has the parameter values of that job."""

import msgspec

from wms.jobdesc.array import expand
from wms.jobdesc.description import JobDescription
from wms.messages.replies import JobDetail


def description_of(detail: JobDetail) -> JobDescription:
    """Return a description that, if submitted, makes a job like the given one."""
    described = msgspec.convert(detail.description, JobDescription)
    if detail.array_index is None:
        return described
    return expand(described, detail.array_index, detail.parameters)
