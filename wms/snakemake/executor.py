"""The executor of Snakemake that runs the jobs of a workflow at the sites.

Each job runs Snakemake itself for its rule, as Snakemake demands. Where sites share the directory of the workflow, jobs work in it. Where
they do not, inputs and sources go to the job in its sandbox, and its outputs come back the same way.
"""

import asyncio
import contextlib
import hashlib
import platform
import shlex
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from msgspec.structs import replace
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.settings import (
    CommonSettings,
    ExecutorSettingsBase,
    SharedFSUsage,
)

from wms.client import Client as AsyncClient
from wms.client.job_events import JobEvents
from wms.client.selector import RANGES_LIMIT, select
from wms.client.settings import data_directory
from wms.client.sync import Client
from wms.errors import Rejected, Unavailable
from wms.ids import joined
from wms.job.state import ENDED, State
from wms.jobdesc.description import JobDescription, SandboxRef
from wms.messages.commands import Selector
from wms.messages.replies import JobLine
from wms.snakemake.job_files import patterns, present, put
from wms.snakemake.job_needs import with_needs

LOOK_SECONDS = (1.0, 10.0)
"""Seconds between polls of the jobs: the first while job events cannot be read, the second while they can."""
LEAST_PAUSE = 0.2

common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    pass_envvar_declarations_to_cmd=False,
    auto_deploy_default_storage_provider=False,
    can_transfer_local_files=True,
)


@dataclass
class WorkflowSettings(ExecutorSettingsBase):
    """The options of the executor on Snakemake's command line: `--wms-data`, `--wms-sites`, `--wms-group`."""

    data: Optional[str] = field(  # noqa: UP045 - Snakemake's parser of options wants it so
        default=None, metadata={"help": "Data directory of the system; else WMS_DATA, or the usual one."}
    )
    sites: Optional[str] = field(  # noqa: UP045
        default=None, metadata={"help": "Sites that may run the jobs, with commas; else any."}
    )
    group: Optional[str] = field(  # noqa: UP045
        default=None, metadata={"help": "Job group of the jobs; else one of this directory."}
    )


class WorkflowExecutor(RemoteExecutor):
    """The executor: submits the jobs that Snakemake gives it, and tells Snakemake how each has ended.

    Raise WorkflowError, with a remedy, if no wms system is found.
    """

    def __init__(self, workflow: Any, logger: Any) -> None:
        settings = workflow.executor_settings or WorkflowSettings()
        self._data = data_directory(Path(settings.data) if settings.data else None)
        self._sites = tuple(part.strip() for part in (settings.sites or "").split(",") if part.strip())
        self._work = Path.cwd()
        self._group = settings.group or f"snakemake-{_digest(f'{platform.node()}:{self._work}')}"
        self._shared = SharedFSUsage.INPUT_OUTPUT in workflow.storage_settings.shared_fs_usage
        self._earlier: dict[str, int] | None = None
        self._sources: SandboxRef | None = None
        self._out = dict[int, SubmittedJobInfo]()
        self._client = Client(self._data)
        self._open = contextlib.ExitStack()
        self._events: JobEvents | None = None
        self._watching: tuple[AsyncClient, asyncio.AbstractEventLoop] | None = None
        try:
            self._open.enter_context(self._client)
        except (Rejected, Unavailable) as fault:
            raise WorkflowError(str(fault)) from None
        super().__init__(workflow, logger)

    # --- submitting -----------------------------------------------------------------------------------------------------

    def run_jobs(self, jobs: Sequence[Any]) -> None:
        """Submit these jobs. A job that an earlier, dead Snakemake submitted and that still runs is followed instead."""
        for job in jobs:
            self.run_job_pre(job)
        self._submit([job for job in jobs if not self._resumed(job)])

    def run_job(self, job: Any) -> None:
        """Submit one job of the workflow. If a job of an earlier run for it has not ended, follow that one instead."""
        self.run_jobs([job])

    def _submit(self, jobs: Sequence[Any]) -> None:
        if not jobs:
            return
        try:
            taken = self._client.submit([self._described(job) for job in jobs])
        except Rejected as fault:
            if len(jobs) == 1:
                self.report_job_error(SubmittedJobInfo(jobs[0]), msg=f"{fault}\n")
            else:  # one of them is at fault: the others go on
                for job in jobs:
                    self._submit([job])
        except Unavailable as fault:
            raise WorkflowError(str(fault)) from None
        else:
            for job, job_id in zip(jobs, taken.job_ids(), strict=True):
                self._follow(job, job_id)

    def _follow(self, job: Any, job_id: int) -> None:
        info = SubmittedJobInfo(job, external_jobid=str(job_id))
        self._out[job_id] = info
        self.report_job_submission(info)

    def _resumed(self, job: Any) -> bool:
        """Return whether an earlier run left a job for this one that has not ended. If so, follow that job."""
        if self._earlier is None:
            ours = select(owner=self._client.credential().owner, group=self._group, state="live")
            self._earlier = {line.name: line.job_id for line in self._client.jobs(ours)}
        job_id = self._earlier.pop(_name(job), None)
        if job_id is None:
            return False
        self.logger.info("Rule %s goes on as job %s of wms.", job.name, job_id)
        self._follow(job, job_id)
        return True

    def _described(self, job: Any) -> JobDescription:
        base = JobDescription(
            executable="bash",
            arguments=("-c", self._command(job)),
            environment=self._environment(),
            name=_name(job),
            job_group=self._group,
            sites=self._sites,
        )
        base = with_needs(base, job.threads, job.resources, own_directory=not self._shared)
        return base if self._shared else self._with_files(base, job)

    def additional_general_args(self) -> str:
        """Return further options of the Snakemake that runs in a job: it tries nothing again, as each try is a job of its own.

        Snakemake has `--retries 0` there, which a rule's own `retries` overrides; it does not override those of preemptible rules.
        """
        return "--preemptible-rules --preemptible-retries 0"

    def _command(self, job: Any) -> str:
        command = str(self.format_job_exec(job))
        return f"cd {shlex.quote(str(self._work))} && {command}" if self._shared else command

    def _environment(self) -> dict[str, str]:
        return {name: str(value) for name, value in self.envvars().items()}

    def _with_files(self, base: JobDescription, job: Any) -> JobDescription:
        if self._sources is None:
            self._sources = self._client.upload(present(self.dag.get_sources(), self._work))
        inputs = present([path for path in job.input if not _is_remote(path)], self._work)
        archives = (self._sources, *([self._client.upload(inputs)] if inputs else []))
        # The job itself removes temporary files that only it reads.
        gone = set(self.dag.get_unneeded_temp_files(job))
        outputs = [path for path in _outputs(job) if path not in gone and not _is_remote(path)]
        return replace(base, input_sandbox=archives, output_sandbox=patterns(outputs, self._work))

    # --- following ------------------------------------------------------------------------------------------------------

    async def _wait_for_jobs(self) -> None:
        async with AsyncClient.connect(self._data) as client, client.events() as events:
            self._watching = client, asyncio.get_running_loop()
            self._events = events
            await super()._wait_for_jobs()

    async def sleep(self) -> None:
        """Wait until a job has changed its state, or until the next poll is due (`LOOK_SECONDS`)."""
        assert self._events is not None
        await asyncio.sleep(LEAST_PAUSE)
        await self._events.moved(LOOK_SECONDS[self._events.readable])

    async def check_active_jobs(self, active_jobs: Sequence[Any]) -> AsyncIterator[Any]:
        """Tell Snakemake which jobs have ended; yield those that have not."""
        by_id = {int(info.external_jobid): info for info in active_jobs}
        try:
            ended = {job.job_id: job for job in await self._ended(by_id)}
        except Unavailable:
            ended = {}
        for job_id, info in by_id.items():
            if job_id not in ended or not await self._told(info, ended[job_id]):
                yield info

    async def _ended(self, job_ids: Iterable[int]) -> list[JobLine]:
        assert self._watching is not None
        client, _ = self._watching
        ranges = joined([(job_id, job_id) for job_id in job_ids])
        selectors = [
            Selector(ids=ranges[start : start + RANGES_LIMIT], states=tuple(ENDED))
            for start in range(0, len(ranges), RANGES_LIMIT)
        ]
        return [job for selector in selectors for job in [job async for job in client.jobs(selector)]]

    async def _told(self, info: Any, job: JobLine) -> bool:
        """Tell Snakemake how a job has ended. Return whether that was possible."""
        fault = "" if job.state == State.DONE else f"job {job.job_id} of wms is {job.state}: {job.reason}"
        try:
            if not (self._shared or fault):
                await self._fetch(job.job_id)
        except Rejected as refused:
            fault = str(refused)
        except Unavailable:
            return False
        self._out.pop(job.job_id, None)
        if fault:
            self.report_job_error(info, msg=f"{fault}; `wms logs {job.job_id}` shows what it printed. ")
        else:
            self.report_job_success(info)
        return True

    async def _fetch(self, job_id: int) -> None:
        assert self._watching is not None
        client, _ = self._watching
        with tempfile.TemporaryDirectory(dir=self._work / ".snakemake", prefix="wms.") as aside:
            fetched = Path(aside, "output")
            await client.output(job_id, fetched)
            await asyncio.to_thread(put, fetched, self._work)

    # --- ending ---------------------------------------------------------------------------------------------------------

    def cancel_jobs(self, active_jobs: Sequence[Any]) -> None:  # noqa: ARG002 - those that are just looked at are not among them
        """Kill all jobs that have not ended."""
        ranges = joined([(job_id, job_id) for job_id in list(self._out)])
        for start in range(0, len(ranges), RANGES_LIMIT):
            try:
                self._client.kill(
                    Selector(ids=ranges[start : start + RANGES_LIMIT]), "its workflow was cancelled"
                )
            except (Rejected, Unavailable) as fault:
                self.logger.warning(
                    "jobs could not be killed: %s; use `wms kill --group %s`", fault, self._group
                )

    def shutdown(self) -> None:
        """Stop watching the jobs, and close the connection."""
        with self.lock:
            self.wait = False
        if self._watching is not None and self._events is not None:
            self._watching[1].call_soon_threadsafe(self._events.look_again)
        super().shutdown()
        self._open.close()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _name(job: Any) -> str:
    """Return a name for a job of Snakemake that is the same in each run of its workflow."""
    return f"{str(job.name)[:150]}-{_digest(repr(job.get_target_spec()))}"


def _outputs(job: Any) -> list[Any]:
    """Return the output files of a job; for a group of jobs, those of all its jobs."""
    singles = job.jobs if job.is_group() else [job]
    named = [path for each in singles for path in [*each.output, *each.log]]
    return named + [each.benchmark for each in singles if each.benchmark]


def _is_remote(path: Any) -> bool:
    return bool(getattr(path, "is_storage", False))
