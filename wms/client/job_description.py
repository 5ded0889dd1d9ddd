"""The description of a single job; for a job of a sweep, with that job's parameter values."""

import msgspec

from wms.jobdesc.array import expand
from wms.jobdesc.description import JobDescription
from wms.messages.replies import JobDetail


def description_of(detail: JobDetail) -> JobDescription:
    """Return a description that, if submitted, makes a job like this one."""
    described = msgspec.convert(detail.description, JobDescription)
    if detail.array_index is None:
        return described
    return expand(described, detail.array_index, detail.parameters)
