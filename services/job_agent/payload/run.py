"""Runs the payload of one attempt: makes its directory, starts its program, enforces its limits, and stores its outputs."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Literal

from services.job_agent.payload.environment import environment_of
from services.job_agent.payload.file_staging import FileStaging, StoppedError, input_fault, lease_over
from services.job_agent.payload.gateway_access import variables
from services.job_agent.payload.image_runtime import (
    ContainedPayload,
    reason_in_container,
    runtime_of,
)
from services.job_agent.payload.limit_enforcement import (
    GRACE_SECONDS,
    PayloadLimits,
    enforce,
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
from services.job_agent.payload.output_upload import keep_outputs
from services.job_agent.payload.process_control import NotStarted, Process
from services.job_agent.payload.shepherd_messages import ProcessEnd, SpawnOrder
from services.job_agent.payload.spawn_order import contained, spawn_order
from services.job_agent.payload.usage_sampling import Watched
from services.job_agent.payload.workdir import Workdir
from services.job_agent.payload.workplace import Workplace
from wms.errors import Rejected, Unavailable
from wms.ids import AttemptId, Epoch, JobId
from wms.job.reasons import Code, Reason
from wms.jobdesc.description import JobDescription
from wms.messages.reports import Usage, UsagePoint


class Payload:
    """The payload of one attempt: `run` it once, `kill` it at any time, and call `clean` after its end.

    `description` is that of this one job, with index and parameters of a job array filled in. `limits` replace those that it
    requests; None: they apply.
    """

    def __init__(
        self,
        workplace: Workplace,
        job_id: JobId,
        epoch: Epoch,
        description: JobDescription,
        limits: PayloadLimits | None = None,
    ) -> None:
        self.job_id = job_id
        self.epoch = epoch
        self._at = workplace
        self._attempt_id = AttemptId(job_id, epoch)
        self._store = workplace.store.of_attempt(self._attempt_id)
        self._description = description
        self._limits = limits or limits_of(description)
        self._gateway = workplace.gateway if description.network == "node" else None
        self._place = Workdir(
            workplace.root,
            job_id,
            epoch,
            description,
            workplace.spares,
            owner=workplace.owner,
            given=self._gateway.files(self._attempt_id) if self._gateway else {},
        )
        self._process: Process | None = None
        self._watched: Watched | None = None
        self._stopped_for: Reason | None = None
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
            process.kill()
        return await self._outcome(ended, self._reason(ended))

    def kill(self, reason: Reason, *, grace: float = GRACE_SECONDS, keep_output: bool = True) -> None:
        """End the payload: SIGTERM to its process group now, SIGKILL to all its processes after `grace` seconds. Return at once.

        The outcome has the reason of the first call; a later call can only hasten the end. After the payload's end a call
        only breaks off the transfers of its outputs. If `keep_output` is False, its outputs are not stored.
        """
        has_ended = self._process is not None and self._process.ended.done()
        if has_ended and self.staging.progress is None:
            return
        self._stopped_for = self._stopped_for or reason
        self._keeps_output = self._keeps_output and keep_output
        if self._process is not None and not has_ended:
            self._end(self._process, grace)

    def live_until(self, boot_seconds: float | None) -> None:
        """Set the end of the lease, at which the shepherd kills the payload, in seconds since boot as `shepherd.now` returns them.

        None: it is not killed. The shepherd does so even if the agent hangs. The outcome's reason is then LEASE_EXPIRED.
        """
        self._deadline = boot_seconds
        if self._process is not None:
            self._process.live_until(boot_seconds)

    async def tail(
        self, stream: Literal["stdout", "stderr"], max_bytes: int, offset: int | None = None
    ) -> Chunk:
        """Return at most `max_bytes` that the payload printed to `stream`, from `offset` on; None: its end. It works until `clean`."""
        captured = self._place.stdout if stream == "stdout" else self._place.stderr
        return await self._at.readers.run(captured.read, max_bytes, offset)

    def clean(self) -> None:
        """Remove the payload's directory, and its image's container if it has one. Call it after the payload's end. Blocking."""
        if self._contained is not None:
            runtime_of(self._at.images).remove(self._contained)
        # What even SIGKILL did not end may write there yet.
        self._place.remove(spare=self._over is not None and not self._over.stuck and not self._over.lost)

    # --- starting ---

    async def _started(self) -> Process | Reason:
        """Prepare the directory and its inputs and start the program. Return its process, or the reason why it could not start."""
        try:
            program = await self._place.prepare(self._store, self._description, self.staging.fetch)
            if self._description.stdin:
                await asyncio.to_thread(self._place.check_stdin, self._description.stdin)
        except (StoppedError, Rejected) as error:
            return input_fault(error)
        except Unavailable as error:
            return Reason(Code.AGENT_ERROR, f"the input sandbox cannot be had just now: {error}")
        except OSError as error:
            return Reason(Code.AGENT_ERROR, f"the job's directory cannot be made: {error}")
        return self._stop_reason() or await self._spawned(program)

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
            process.kill()
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
            processors=self._description.processors,
            passed=self._at.passed,
            gateway=variables(self._gateway, self._place.scratch),
        )
        order = spawn_order(
            self._description,
            self._place,
            self._limits,
            program,
            environment,
            deadline=self._deadline,
            cgroup=self._at.cgroup(self._attempt_id, in_image=bool(self._description.container)),
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
        """Kill the payload if its last usage sample exceeds a limit."""
        if self._watched and not self._stopped_for:
            enforce(self._limits, self._watched.usage, self.kill)

    def _end(self, process: Process, grace: float) -> None:
        if grace <= 0:
            process.kill()
            return
        process.signal(signal.SIGTERM)
        asyncio.get_running_loop().call_later(grace, process.kill)

    # --- ending ---

    def _reason(self, ended: ProcessEnd) -> Reason:
        if self._stopped_for:
            return self._stopped_for
        return reason_of_end(ended, self._description.success_exit_codes, self._limits)

    def _stop_reason(self) -> Reason | None:
        return self._stopped_for or lease_over(self._deadline)

    async def _outcome(self, ended: ProcessEnd, reason: Reason) -> PayloadOutcome:
        if not self._keeps_output:
            return PayloadOutcome(
                reason=reason, exit_code=ended.exit_code, signal=ended.signal, usage=self._usage(ended, 0)
            )
        if self._description.stdout or self._description.stderr:
            await asyncio.to_thread(self._place.name_printed, self._description)
        chosen, allowed = self._description.output_sandbox, self._limits.output_bytes
        kept = await keep_outputs(self._place, self._store, chosen, allowed, self._at.keepers)
        if self._contained is not None:
            reason = reason_in_container(reason, ended.exit_code, kept.harvest.stderr_tail)
        # That outputs are missing matters only if the payload did well.
        if reason.code is Code.DONE:
            reason = kept.fault or await self.staging.deliver(self._place.outgoing) or reason
        usage = self._usage(ended, kept.harvest.disk_bytes)
        return outcome_of(ended, reason, usage, kept, self.staging)

    def _usage(self, ended: ProcessEnd, disk: int) -> Usage:
        seen = self.usage_now
        return whole_usage(ended, seen, disk, in_image=self._contained is not None)
