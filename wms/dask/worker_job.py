"""A Dask worker as a job: the description of the job, and its start and end for the cluster that it belongs to."""

import math
from collections.abc import Sequence

from distributed.core import Status
from distributed.deploy.spec import ProcessInterface
from distributed.security import Security
from msgspec import Struct

from wms.client.client import Client
from wms.client.selector import select
from wms.errors import Rejected, Unavailable
from wms.jobdesc.description import MIB, JobDescription, SandboxRef, revised

CERTIFICATES = {
    "--tls-ca-file": "tls_ca_file",
    "--tls-cert": "tls_worker_cert",
    "--tls-key": "tls_worker_key",
}
"""The options of a worker that name its certificate files, and the field of Dask's `Security` with each certificate."""
OWN_MEMORY_MB = 512
"""MiB by which a job's memory limit exceeds that of its worker, for the process that watches the worker."""


class WorkerNeeds(Struct, frozen=True, kw_only=True):
    """What each worker of a cluster needs, and how it is started."""

    cores: int
    memory: int
    """The memory of a worker in bytes."""
    walltime: int | None
    """The longest run time of a worker in seconds; None leaves it to the site."""
    death_timeout: int
    """Seconds without a connection to its scheduler after which a worker ends."""
    extra_args: tuple[str, ...]
    description: JobDescription


class ClusterContext:
    """What the workers of one cluster share: the client, and the archive of files that each job gets. Both are None before the cluster connects."""

    def __init__(self) -> None:
        self.client: Client | None = None
        self.files: SandboxRef | None = None

    @property
    def open_client(self) -> Client:
        """The client of the cluster. Raise Unavailable if the cluster is not connected."""
        if self.client is None:
            raise Unavailable("the cluster is not connected to the system")
        return self.client


def certificates(security: Security) -> dict[str, str]:
    """Return the certificates of a worker, by the worker's option for each file.

    A value is the text of the certificate, or a path on this machine.
    """
    said = {option: getattr(security, field) for option, field in CERTIFICATES.items()}
    return {option: str(value) for option, value in said.items() if value}


def file_name(option: str) -> str:
    """Return the name, in the job's directory, of the certificate file that this option of the worker names."""
    return f"{option.removeprefix('--')}.pem"


def described(
    needs: WorkerNeeds,
    scheduler: str,
    name: str,
    *,
    files: SandboxRef | None = None,
    options: Sequence[str] = (),
) -> JobDescription:
    """Return the job description of a worker. `files` is the archive with its certificates; `options` are the worker's options that name them."""
    base = needs.description
    lifetime = () if needs.walltime is None else _lifetime(needs.walltime)
    tls = [word for option in options for word in (option, file_name(option))]
    arguments = (
        *base.arguments,
        *("-m", "distributed.cli.dask_worker", scheduler),
        *("--name", name),
        *("--nthreads", str(needs.cores)),
        *("--memory-limit", str(needs.memory)),
        *("--death-timeout", str(needs.death_timeout)),
        *("--local-directory", ".", "--no-dashboard"),
        *lifetime,
        *tls,
        *needs.extra_args,
    )
    changes = {
        "arguments": arguments,
        "name": name,
        "processors": needs.cores,
        "memory_mb": math.ceil(needs.memory / MIB),
        "max_memory_mb": math.ceil(needs.memory / MIB) + OWN_MEMORY_MB,
        "wall_time": base.wall_time if needs.walltime is None else needs.walltime,
        "input_sandbox": (*base.input_sandbox, *([files] if files else [])),
    }
    return revised(base, changes)


def _lifetime(walltime: int) -> tuple[str, ...]:
    """Return the options by which workers end before their wall time, in seconds, and not all at once: an hour gives 55 minutes, 4 more or less."""
    margin, stagger = min(60, walltime // 10), min(240, walltime // 15)
    return ("--lifetime", f"{max(1, walltime - margin - stagger)}s", "--lifetime-stagger", f"{stagger}s")


class WorkerJob(ProcessInterface):
    """A worker of a `WmsCluster`. When Dask starts the worker, the job is submitted; when Dask closes it, the job is killed."""

    def __init__(
        self,
        scheduler: str,
        name: str,
        *,
        needs: WorkerNeeds,
        link: ClusterContext,
        options: Sequence[str],
    ) -> None:
        super().__init__(scheduler=scheduler, name=name)
        self.name = name
        self.job_id: int | None = None
        self._scheduler = scheduler
        self._needs = needs
        self._link = link
        self._options = options

    async def start(self) -> None:
        """Submit the job. Raise Rejected or Unavailable if it was not accepted."""
        job = described(
            self._needs, self._scheduler, self.name, files=self._link.files, options=self._options
        )
        try:
            taken = await self._link.open_client.submit(job)
        except (Rejected, Unavailable):
            self.status = Status.failed
            raise
        (self.job_id,) = taken.job_ids()
        await super().start()

    async def close(self) -> None:
        """Kill the job, unless it has ended."""
        if self.job_id is not None and self.status == Status.running:
            self.status = Status.closing
            await self._link.open_client.kill(select(self.job_id), "its Dask cluster needs it no more")
        await super().close()

    async def lost(self) -> None:
        """Record that the job has ended although nobody closed the worker."""
        await super().close()
