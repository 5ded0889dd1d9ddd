"""The Python API: submit jobs, watch them, control them, and fetch their output.

    from wms.client import Client, JobDescription, select

    async with Client.connect() as client:
        hello = JobDescription(executable="echo", arguments=("hello",), output_sandbox=("*.txt",))
        submitted = await client.submit(hello)
        counts = await client.wait(submitted.selector())
        async for job in client.jobs(select(state=["Failed"])):
            print(job.job_id, (await client.why(job.job_id)).summary)

`wms.client.sync.Client` is the same for programs that do not await. A refused call raises `Rejected`, whose text contains
the remedy. An unanswered call raises `Unavailable`; make the same call again.
"""

from wms.client.client import Client
from wms.client.selector import select
from wms.client.settings import ClientSettings, read_settings
from wms.client.submission import Submission
from wms.errors import Rejected, Unavailable
from wms.job.state import ENDED, State
from wms.jobdesc.description import JobDescription, SandboxRef
from wms.messages.commands import Selector

__all__ = [
    "ENDED",
    "Client",
    "ClientSettings",
    "JobDescription",
    "Rejected",
    "SandboxRef",
    "Selector",
    "State",
    "Submission",
    "Unavailable",
    "read_settings",
    "select",
]


def __dir__() -> list[str]:
    return __all__
