"""The payload of a job that is sent directly as a batch job: its command line, its environment, and its unpacked input files."""

import asyncio
import shutil
from pathlib import Path

from wms.db.direct_job import DirectJob
from wms.dispatch.direct import DirectPayload, StagedFiles
from wms.jobdesc.description import JobDescription
from wms.transfer import Allowance, SandboxStore, download
from wms.transfer.archive import MIB

PATH = "/usr/local/bin:/usr/bin:/bin"
OURS = "WMS_"
NO_FILES = StagedFiles()


async def payload_of(
    job: DirectJob,
    description: JobDescription,
    store: SandboxStore,
    directory: Path,
    staged: StagedFiles = NO_FILES,
) -> DirectPayload:
    """Return the payload of a job, with its input sandboxes unpacked into `directory`, whose earlier content is removed.

    `staged` are the files by URL that the element's middleware is to move. Raise Rejected if the inputs cannot be had or take
    more disk than the job asks for (DISK_LIMIT), and Unavailable if the store does not answer.
    """
    await asyncio.to_thread(_made_anew, directory)
    allowance = Allowance(None if description.disk_mb is None else description.disk_mb * MIB)
    for sandbox in description.input_sandbox:
        to = directory / sandbox.directory
        await asyncio.to_thread(to.mkdir, parents=True, exist_ok=True)
        await download(store, sandbox.sha256, to, size=sandbox.size, allowance=allowance)
    return DirectPayload(
        argv=(description.executable, *description.arguments),
        environment=_environment(job, description),
        stdin=description.stdin,
        cpu_seconds=description.cpu_time,
        inputs=directory,
        staged=staged,
    )


def _made_anew(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True, mode=0o700)


def _environment(job: DirectJob, description: JobDescription) -> dict[str, str]:
    own = {name: value for name, value in description.environment.items() if not name.startswith(OURS)}
    ours = {
        "WMS_JOB_ID": str(job.job_id),
        "WMS_EPOCH": str(job.epoch),
        "WMS_SITE": job.site,
        "WMS_CE": job.ce,
        "WMS_PILOT": job.pilot_id,
        "WMS_PROCESSORS": str(description.processors),
    }
    return {"PATH": PATH, "LANG": "C.UTF-8", **own, **ours}
