"""Runs the payload of one attempt: makes its directory, starts its program, enforces its limits, and stores its outputs."""

import asyncio
import math
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import BinaryIO, Literal

import msgspec

from services.job_agent.payload.environment import Allotment, environment_of
from services.job_agent.payload.file_staging import FileStaging, StoppedError, input_fault, lease_over
from services.job_agent.payload.gateway_access import variables
from services.job_agent.payload.image_runtime import (
    ContainedPayload,
    mount_points,
    reason_in_container,
    runtime_of,
)
from services.job_agent.payload.limit_enforcement import (
    PayloadLimits,
    PayloadUsage,
    enforce,
    exceeded_limit,
    in_grace,
    limits_of,
    wall_time_exceeded,
)
from services.job_agent.payload.outcome import (
    PayloadOutcome,
    outcome_of,
    reason_of_end,
    unwatched,
    whole_usage,
)
from services.job_agent.payload.output_capture import Chunk
from services.job_agent.payload.output_upload import KeptOutputs, Wanted, keep_outputs
from services.job_agent.payload.process_control import NotStarted, Process
from services.job_agent.payload.shepherd_messages import ProcessEnd, SpawnOrder
from services.job_agent.payload.spawn_order import contained, spawn_order
from services.job_agent.payload.stager_link import Ready
from services.job_agent.payload.stager_process import StagerProcess
from services.job_agent.payload.usage_sampling import Watched
from services.job_agent.payload.workdir import Workdir
from services.job_agent.payload.workplace import Workplace
from wms.errors import Rejected, Unavailable
from wms.ids import AttemptId, Epoch, JobId
from wms.job.reasons import Code, Reason
from wms.jobdesc.description import JobDescription
from wms.messages.reports import Usage, UsagePoint
from wms.runtime import clock
from wms.transfer import fetch_archive


class Payload:
    """The payload of one attempt: `run` it once, `kill` it at any time, and call `clean` after its end.

    `description` is that of this one job, with index and parameters of a job array filled in. `limits` replace those that it
    requests; None: they apply. `owner` is the owner of the job, `allotted` what it has of its node; None: processors alone.
    """

    def __init__(
        self,
        workplace: Workplace,
        job_id: JobId,
        epoch: Epoch,
        description: JobDescription,
        limits: PayloadLimits | None = None,
        *,
        owner: str = "",
        allotted: Allotment | None = None,
    ) -> None:
        self.job_id = job_id
        self.epoch = epoch
        self._at = workplace
        self._attempt_id = AttemptId(job_id, epoch)
        self._store = workplace.store.of_attempt(self._attempt_id)
        self._description = description
        self._allotted = allotted or Allotment(processors=description.processors)
        self._limits = limits or limits_of(description, workplace.disk_share, workplace.grace_most)
        self._gateway = workplace.gateway if description.network == "node" else None
        self._place = Workdir(
            workplace.root,
            job_id,
            epoch,
            description,
            workplace.spares,
            owner=workplace.owner,
            job_owner=owner,
        )
        self._unchanged_ns: int | None = None
        self._stager = StagerProcess(workplace, self._place, self._attempt_id, self._limits)
        self._process: Process | None = None
        self._watched: Watched | None = None
        self._stopped_for: Reason | None = None
        self._bounds = self._limits
        """What the payload may use while it is being ended."""
        self._keeps_output = True
        self._deadline: float | None = None
        self._over: ProcessEnd | None = None
        self._contained: ContainedPayload | None = None
        self.staging = FileStaging(
            workplace.transfers,
            self._attempt_id,
            description,
            self._limits.disk_bytes,
            self._stop_reason,
        )

    @property
    def pid(self) -> int | None:
        """The pid of the payload's main process. None unless that runs now."""
        return self._process.pid if self._process and not self._process.ended.done() else None

    @property
    def has_begun(self) -> bool:
        """Whether the payload's program was started, even if it has ended since."""
        return self._process is not None

    @property
    def usage_now(self) -> Usage:
        """The resources that the payload has used so far, as last sampled. All CPU time counts as user time."""
        if self._watched is None:
            return Usage()
        seen = self._watched.usage
        return Usage(
            cpu_user_seconds=seen.cpu_seconds,
            wall_seconds=self._watched.age,
            max_rss_bytes=self._watched.peak_bytes,
            disk_bytes=seen.disk_bytes,
        )

    def new_points(self) -> tuple[UsagePoint, ...]:
        """Return all points of CPU time and memory over time, if there are new ones since the last call; else nothing."""
        return self._watched.curve.news() if self._watched else ()

    async def run(self, on_start: Callable[[int], Awaitable[None]] | None = None) -> PayloadOutcome:
        """Prepare the directory, start the program, watch it to its end and store its outputs. Return how it ended.

        `on_start` is called with the pid once the program runs. Errors of the job or the node are in the outcome; only errors
        in the agent's own code are raised. If the call is cancelled, the payload is killed.
        """
        process = await self._started()
        if isinstance(process, Reason):
            return PayloadOutcome(reason=process, began=False, transfers=self.staging.measured)
        try:
            if on_start:
                await on_start(process.pid)
            self._over = ended = await self._watch(process)
        finally:
            process.end()
        return await self._outcome(ended, self._reason(ended))

    def kill(self, reason: Reason, *, grace: float = math.inf, keep_output: bool = True) -> None:
        """End the payload: SIGTERM to all its processes now, SIGKILL after its grace, or after `grace` seconds if that is less.

        The call returns at once. The outcome has the reason of the first call; a later call can only hasten the end. After the
        payload's end a call only breaks off the transfers of its outputs. If `keep_output` is False, its outputs are not
        stored.
        """
        has_ended = self._process is not None and self._process.ended.done()
        if has_ended and self.staging.progress is None:
            return
        if self._stopped_for is None:
            self._stopped_for = reason
            self._bounds = in_grace(self._limits, self._watched.usage if self._watched else PayloadUsage())
        self._keeps_output = self._keeps_output and keep_output
        if self._process is None:
            self._stager.kill()
        elif not has_ended:
            self._process.end(min(grace, self._limits.grace_seconds))

    def live_until(self, boot_seconds: float | None) -> None:
        """Set the end of the lease, at which the shepherd kills the payload, in seconds since boot as `shepherd.now` returns them.

        None: it is not killed. The shepherd does so even if the agent hangs. The outcome's reason is then LEASE_EXPIRED.
        """
        self._deadline = boot_seconds
        self._stager.live_until(boot_seconds)
        if self._process is not None:
            self._process.live_until(boot_seconds)

    async def tail(
        self, stream: Literal["stdout", "stderr"], max_bytes: int, offset: int | None = None
    ) -> Chunk:
        """Return at most `max_bytes` that the payload printed to `stream`, from `offset` on; None: its end. It works until `clean`."""
        captured = self._place.stdout if stream == "stdout" else self._place.stderr
        return await self._at.readers.run(captured.read, max_bytes, offset)

    async def clean(self) -> None:
        """Remove the payload's directory, and its image's container if it has one. Call it after the payload's end.

        Raise Unavailable if its files cannot be deleted.
        """
        if self._contained is not None:
            await asyncio.to_thread(runtime_of(self._at.images).remove, self._contained)
        ended = self._over or ProcessEnd()
        is_clean = ended.is_untouched or await self._stager.clear()
        await self._stager.close()
        if not await asyncio.to_thread(self._place.remove, spare=is_clean and ended.is_free):
            raise Unavailable("the payload's files could not be deleted")

    # --- starting ---

    async def _started(self) -> Process | Reason:
        """Prepare the directory and its inputs and start the program. Return its process, or the reason why it could not start."""
        try:
            program = await self._prepared()
        except (StoppedError, Rejected) as error:
            return input_fault(error)
        except Unavailable as error:
            return self._stop_reason() or Reason(
                Code.AGENT_ERROR, f"the input sandbox cannot be had just now: {error}"
            )
        except OSError as error:
            return Reason(Code.AGENT_ERROR, f"the job's directory cannot be made: {error}")
        held = await self._at.starts.wait(clock.now, self._stop_reason)
        return held or await self._spawned(program)

    async def _prepared(self) -> str:
        """Make the directories and let the stager put the inputs into them. Return the path or name of the program to execute.

        Raise OSError if the node's disk fails, Rejected if an input cannot be used, Unavailable if the store cannot be reached.
        """
        asked = self._description
        await asyncio.to_thread(self._place.make)
        given = self._given if asked.container else {}
        points = mount_points(*self._place.measured) if asked.container else []
        if not (asked.input_sandbox or asked.inputs or asked.stdin or given or points):
            return asked.executable
        await asyncio.to_thread(self._place.incoming.mkdir, mode=0o700)
        ready = await self._staged(given, points)
        await self._stager.close()
        self._unchanged_ns = ready.unchanged_ns
        return str(self._place.work / asked.executable) if ready.is_own else asked.executable

    async def _staged(self, given: Mapping[str, str], directories: list[str]) -> Ready:
        asked, run = self._description, self._stager.run
        link = await self._stager.opened(self._deadline)
        for sandbox in asked.input_sandbox:
            archive = self._place.incoming / "archive"
            await fetch_archive(self._store, sandbox.sha256, archive, sandbox.size)
            await run(link.unpack, archive, sandbox.directory)
            await asyncio.to_thread(archive.unlink)
        if asked.inputs:
            await self.staging.fetch(self._place.incoming)
        for each in asked.inputs:
            fetched = self._place.incoming / each.name
            await run(link.put, fetched, each.name, executable=each.executable)
            await asyncio.to_thread(fetched.unlink)
        if given or directories:
            await run(link.give, given, directories)
        return await run(link.ready, asked.executable, asked.stdin)

    @property
    def _given(self) -> dict[str, str]:
        return self._gateway.files(self._attempt_id) if self._gateway else {}

    async def _spawned(self, program: str) -> Process | Reason:
        try:
            order = await self._ordered(program)
            self._process = process = await self._at.processes.spawn(order)
        except (NotStarted, Rejected) as error:
            return Reason(Code.NOT_STARTED, str(error))
        except Unavailable as error:
            return Reason(Code.AGENT_ERROR, str(error))
        if self._deadline != order.deadline:  # moved meanwhile
            process.live_until(self._deadline)
        if self._stopped_for:
            process.end()
        return process

    async def _ordered(self, program: str) -> SpawnOrder:
        if self._description.container:
            return await asyncio.to_thread(self._order, program)
        return self._order(program)

    def _order(self, program: str) -> SpawnOrder:
        """Return the order to start `program`. If the job names an image, this blocks, and raises Rejected if that cannot be run.

        Raise Unavailable if the node runs no images.
        """
        environment = environment_of(
            agent={} if self._description.container else os.environ,
            user=self._description.environment,
            job_id=self.job_id,
            epoch=self.epoch,
            site=self._at.site,
            pilot_id=self._at.pilot_id,
            work=self._place.work,
            scratch=self._place.scratch,
            allotted=self._allotted,
            memory_bytes=self._limits.memory_bytes,
            passed=self._at.passed,
            told={**self._at.of_site, **variables(self._gateway, self._place.scratch)},
        )
        order = spawn_order(
            self._description,
            self._place,
            self._limits,
            program,
            environment,
            deadline=self._deadline,
            cgroup=self._at.cgroup(self._attempt_id, in_image=bool(self._description.container)),
            given={} if self._description.container else self._given,
            cpus=self._allotted.cpus,
        )
        if self._description.container:
            self._contained = contained(order, self._description, self._place, self._at.isolation)
            return runtime_of(self._at.images).order(self._contained)
        return order

    # --- watching ---

    async def _watch(self, process: Process) -> ProcessEnd:
        self._watched = watched = Watched(
            process,
            self._limits,
            self._place.disk_bytes,
            self._judge,
            lambda error: self.kill(unwatched(error)),
        )
        loop = asyncio.get_running_loop()
        wall = self._limits.wall_seconds
        timer = None if wall is None else loop.call_later(wall, lambda: self.kill(wall_time_exceeded(wall)))
        try:
            with self._at.sampler.watching(watched):
                ended = await asyncio.shield(process.ended)
        finally:
            watched.stop()
            if timer:
                timer.cancel()
        return ended

    def _judge(self) -> None:
        """End the payload if its last usage sample exceeds a limit. If it is being ended, its bounds in the grace count instead."""
        if self._watched is None or self._process is None:
            return
        if self._stopped_for is None:
            enforce(self._limits, self._watched.usage, self.kill)
        elif exceeded_limit(self._bounds, self._watched.usage):
            self._process.end()

    # --- ending ---

    def _reason(self, ended: ProcessEnd) -> Reason:
        good, peak = self._description.success_exit_codes, self.usage_now.max_rss_bytes
        return self._stopped_for or reason_of_end(ended, good, self._limits, self._at.overrun, peak)

    def _stop_reason(self) -> Reason | None:
        return self._stopped_for or lease_over(self._deadline)

    async def _outcome(self, ended: ProcessEnd, reason: Reason) -> PayloadOutcome:
        if not self._keeps_output:
            return PayloadOutcome(
                reason=reason, exit_code=ended.exit_code, signal=ended.signal, usage=self._usage(ended, 0)
            )
        kept = await self._kept(ended)
        if self._contained is not None:
            reason = reason_in_container(reason, ended.exit_code, kept.stderr.text)
        # That outputs are missing matters only if the payload did well.
        if reason.code is Code.DONE:
            reason = kept.fault or await self.staging.deliver(self._outgoing) or reason
        usage = self._usage(ended, kept.selected.disk_bytes)
        return outcome_of(ended, reason, usage, kept, self.staging)

    async def _kept(self, ended: ProcessEnd) -> KeptOutputs:
        """Store the outputs. Without a stager, which a payload needs only if it left files, store what it printed."""
        asked, link, fault = self._description, None, None
        names = {asked.stdout: self._place.stdout, asked.stderr: self._place.stderr}
        named = {name: captured for name, captured in names.items() if name}
        try:
            if named or asked.outputs or not ended.is_untouched:
                link = await self._stager.opened(self._deadline)
            for name, captured in named.items():
                assert link is not None
                await self._stager.run(link.name_printed, name, await asyncio.to_thread(captured.finish))
        except (Unavailable, OSError) as error:
            link, fault = None, Reason(Code.AGENT_ERROR, f"the outputs cannot be collected: {error}")
        kept = await keep_outputs(
            self._place,
            self._store,
            link,
            Wanted(
                patterns=asked.output_sandbox,
                allowed=self._limits.output_bytes,
                unchanged_ns=self._unchanged_ns,
            ),
            self._at.keepers,
        )
        return msgspec.structs.replace(kept, fault=fault or kept.fault)

    async def _outgoing(self, names: Iterable[str]) -> Mapping[str, BinaryIO]:
        link = await self._stager.opened(self._deadline)
        found = {name: await self._stager.run(link.output, name) for name in names}
        return {name: file for name, file in found.items() if file}

    def _usage(self, ended: ProcessEnd, disk: int) -> Usage:
        return whole_usage(ended, self.usage_now, disk, in_image=self._contained is not None)
