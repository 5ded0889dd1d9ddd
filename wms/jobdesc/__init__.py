"""Job descriptions: the fields of a job, the rules for them, job arrays, and a reader for each language."""

from wms.jobdesc.array import argv, expand, jobs_in
from wms.jobdesc.description import JobDescription, SandboxRef, digest
from wms.jobdesc.from_json import read_json
from wms.jobdesc.from_toml import read_toml
from wms.jobdesc.problem import InvalidDescription, Problem
from wms.jobdesc.reader import read
from wms.jobdesc.validation import validate

__all__ = [
    "InvalidDescription",
    "JobDescription",
    "Problem",
    "SandboxRef",
    "argv",
    "brokered",
    "digest",
    "expand",
    "jobs_in",
    "read",
    "read_json",
    "read_toml",
    "validate",
]
