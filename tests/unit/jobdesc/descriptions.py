"""A description for tests, and the places of its problems."""

from typing import Any

from wms.jobdesc import (
    JobDescription,
)


def of(**fields: Any) -> JobDescription:
    return JobDescription(**{"executable": "/bin/true", **fields})
