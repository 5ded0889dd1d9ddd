"""A Dask cluster whose workers are jobs at the sites, with the scheduler in the program itself.

    from wms.dask import WmsCluster

    with WmsCluster(cores=2, memory="4 GiB") as cluster, cluster.get_client() as client:
        cluster.scale(10)
        print(client.submit(sum, [1, 2]).result())

Workers connect to the scheduler, so the sites must reach this machine. All connections use TLS with keys of this cluster alone, which
go to the workers in their sandbox.
"""

import asyncio
import contextlib
import logging
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dask.utils import parse_bytes, parse_timedelta
from distributed.core import Status
from distributed.deploy.spec import SpecCluster
from distributed.scheduler import Scheduler
from distributed.security import Security

from wms.client.client import Client
from wms.client.files import members
from wms.client.selector import RANGES_LIMIT
from wms.client.settings import ClientSettings
from wms.dask.worker_job import ClusterContext, WorkerJob, WorkerNeeds, certificates, file_name
from wms.errors import Rejected, Unavailable
from wms.ids import joined
from wms.job.state import ENDED, State
from wms.jobdesc.description import JobDescription
from wms.messages.commands import Selector
from wms.messages.replies import JobLine

LOOK_SECONDS = (2.0, 30.0)
"""Seconds between polls of the workers' jobs: the first while job events cannot be read, the second while they can."""
LEAST_PAUSE = 1.0
FAILURES_LIMIT = 10
"""After the jobs of this many workers have failed in a row, `adapt` starts no more."""
_QUIET = {"dashboard": False, "dashboard_address": ":0"}
_PYTHON = JobDescription(executable="python3")
_log = logging.getLogger(__name__)


class WmsCluster(SpecCluster):
    """A Dask cluster of workers that are jobs, one worker a job.

    `cores` are the threads of a worker and the processors of its job. `memory` is a text such as "2 GiB", or bytes; `walltime` is a text such as "30
    min", or seconds. `description` is the job description on which workers' jobs are based: the Python program to run and further requirements.
    `files` are sent with each worker. The scheduler listens on `host`, with `scheduler_options`. By default this is an address of this machine, with
    any free port.

    `scale(n)` starts or ends workers until there are n. `adapt(minimum=, maximum=)` keeps as many as the tasks need. A worker whose job has ended is
    replaced under `adapt` alone; a warning tells the reason. `close` ends workers and scheduler, and so does the end of the program. If the program
    dies, the workers end after `death_timeout`.

    Raise Rejected, with a remedy, if no wms system is found.
    """

    def __init__(
        self,
        *,
        cores: int = 1,
        memory: str | int = "2 GiB",
        walltime: str | float | None = None,
        settings: ClientSettings | Path | None = None,
        description: JobDescription = _PYTHON,
        files: Iterable[str | Path] = (),
        name: str = "dask",
        host: str | None = None,
        scheduler_options: Mapping[str, Any] | None = None,
        security: Security | None = None,
        death_timeout: str | float = 60,
        worker_extra_args: Iterable[str] = (),
        asynchronous: bool = False,
        loop: Any = None,
    ) -> None:
        self._settings = settings
        self._files = dict[str, Path | bytes](members(files))
        self._link = ClusterContext()
        self._stack = contextlib.AsyncExitStack()
        self._watching: asyncio.Task[None] | None = None
        self.losses = 0
        """The number of workers in a row whose jobs have failed."""
        security = Security.temporary() if security is None else security
        self._certificates = certificates(security)
        self._needs = WorkerNeeds(
            cores=cores,
            memory=parse_bytes(memory),
            walltime=None if walltime is None else math.ceil(parse_timedelta(walltime)),
            death_timeout=math.ceil(parse_timedelta(death_timeout)),
            extra_args=tuple(worker_extra_args),
            description=description,
        )
        shared = {"needs": self._needs, "link": self._link, "options": tuple(self._certificates)}
        listens = {"host": host, "protocol": "tls://" if security.require_encryption else "tcp://"}
        try:
            super().__init__(
                scheduler={
                    "cls": Scheduler,
                    "options": {**_QUIET, **listens, "security": security, **(scheduler_options or {})},
                },
                worker={"cls": WorkerJob, "options": shared},
                asynchronous=asynchronous,
                loop=loop,
                security=security,
                silence_logs=logging.WARNING,
                name=name,
            )
        except (Rejected, Unavailable):
            self.status = Status.closed
            self._loop_runner.stop()
            raise

    # --- what Dask asks of a cluster ------------------------------------------------------------------------------------

    async def _start(self) -> None:
        if self._watching is None:
            await self._connect()
        await super()._start()

    async def _close(self) -> None:
        try:
            await super()._close()
        finally:
            if self._watching is not None:
                self._watching.cancel()
                await asyncio.wait([self._watching])
            await self._stack.aclose()

    def _new_worker_name(self, worker_number: int) -> str:
        return f"{self._name}-{worker_number}"

    def _threads_per_worker(self) -> int:
        return self._needs.cores

    def _memory_per_worker(self) -> int:
        return self._needs.memory

    # --- the jobs of the workers ----------------------------------------------------------------------------------------

    async def _connect(self) -> None:
        client = await self._stack.enter_async_context(Client.connect(self._settings))
        files = {**self._files, **_certificate_files(self._certificates)}
        self._link.files = await client.upload(files) if files else None
        self._link.client = client
        self._watching = asyncio.create_task(self._watch(client), name="jobs of Dask workers")

    async def _watch(self, client: Client) -> None:
        async with client.events() as events:
            while True:
                await events.moved(LOOK_SECONDS[events.readable])
                with contextlib.suppress(Unavailable):
                    await self._drop_ended(client)
                await asyncio.sleep(LEAST_PAUSE)

    async def _drop_ended(self, client: Client) -> None:
        workers = {job.job_id: name for name, job in self.workers.items() if job.job_id is not None}
        ranges = joined([(job_id, job_id) for job_id in workers])
        for start in range(0, len(ranges), RANGES_LIMIT):
            selector = Selector(ids=ranges[start : start + RANGES_LIMIT], states=tuple(ENDED))
            async for job in client.jobs(selector):
                await self._drop(workers[job.job_id], job)

    async def _drop(self, name: str, job: JobLine) -> None:
        """Forget a worker whose job has ended. `adapt` then starts another if one is needed."""
        worker = self.workers.pop(name, None)
        if worker is None or self.worker_spec.pop(name, None) is None:  # Dask has closed it
            return
        connected = name in {each["name"] for each in self.scheduler_info["workers"].values()}
        await worker.lost()
        self.losses = 0 if connected or job.state == State.DONE else self.losses + 1
        _log.warning("worker %s has ended: job %s is %s: %s", name, job.job_id, job.state, job.reason)
        if self.losses >= FAILURES_LIMIT:
            _log.error("the last %s workers have ended so: no more are started", self.losses)
            with contextlib.suppress(AttributeError):
                self._adaptive.stop()


def _certificate_files(said: Mapping[str, str]) -> dict[str, Path | bytes]:
    """Return the certificate files for a job's sandbox, by name. Each certificate in `said` is given as its text or as a path."""
    return {
        file_name(option): value.encode() if "\n" in value else Path(value) for option, value in said.items()
    }
