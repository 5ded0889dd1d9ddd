"""The slots of a pilot: payloads are started once their leases are granted, ended on order, and their results are reported."""

import asyncio
import math
from collections.abc import Callable

import msgspec
import structlog
from msgspec.structs import replace

from services.job_agent.leased_jobs import LeasedJob, LeasedJobs, usage_of
from services.job_agent.payload.environment import Allotment
from services.job_agent.payload.outcome import PayloadOutcome, agent_fault, not_begun, result_of
from services.job_agent.payload.run import Payload
from services.job_agent.payload.shepherd import now
from services.job_agent.payload.workplace import Workplace
from services.job_agent.reporter import Reporter
from wms.job.reasons import Code, Reason

log = structlog.get_logger()

KILLED = Reason(Code.KILLED_BY_USER, "killed as ordered")
LOST = Reason(Code.LEASE_EXPIRED, "the lease was lost")


class Slots:
    """Starts and ends the payloads of a pilot's leased jobs, each in a task of its own.

    `on_end` is called after the end of each payload. `group`, the task group of the agent, must be set before the first start.
    """

    def __init__(
        self,
        workplace: Workplace,
        holdings: LeasedJobs,
        reporter: Reporter,
        on_end: Callable[[], None],
    ) -> None:
        self._workplace = workplace
        self._holdings = holdings
        self._reporter = reporter
        self._on_end = on_end
        self._tasks: set[asyncio.Task[None]] = set()
        self._running: set[LeasedJob] = set()
        """The jobs whose task will report their result, so that nothing else has to."""
        self._over: list[Payload] = []
        self._cleaning: asyncio.Task[None] | None = None
        self.group: asyncio.TaskGroup | None = None
        self.ended = 0
        """How many payloads have ended, for whatever reason."""

    # --- leases ---

    def on_each(self, holdings: list[LeasedJob], action: Callable[[LeasedJob], None]) -> None:
        """Call `action` with each of these jobs. A job for which it raises an error is ended, and reported with AGENT_ERROR; the others go on."""
        for holding in holdings:
            try:
                action(holding)
            except Exception as error:
                log.exception("job failed in the agent", job=holding.attempt_id.job_id)
                self._fail(holding, error)

    def _fail(self, holding: LeasedJob, error: Exception) -> None:
        """End one job because the agent itself failed with `error`. It is reported once, with the code AGENT_ERROR.

        If its payload runs, the payload is killed, and the task that waits for its end reports it.
        """
        payload = holding.payload
        if payload is None or holding not in self._running:
            self._finish_unbegun(holding, agent_fault(error))
        else:
            payload.kill(agent_fault(error), grace=0.0)

    def grant(self, holding: LeasedJob, until: float) -> None:
        """Record that the services granted or extended the lease of a job until `until`, in seconds since boot.

        At the first grant the job is queued for a free slot. A job that the user killed, or whose description cannot be read,
        ends at once instead.
        """
        # Answers may come in another order than their reports were sent in.
        fresh, holding.expires_at = holding.expires_at is None, max(until, holding.expires_at or 0.0)
        if holding.payload is not None:
            holding.payload.live_until(holding.expires_at)
        elif holding.kill_ordered:
            self._finish_unbegun(holding, KILLED)
        elif holding.fault:
            self._finish_unbegun(holding, Reason(Code.AGENT_ERROR, holding.fault[:500]))
        elif fresh:
            self._holdings.make_ready(holding, now())

    def lose(self, holding: LeasedJob) -> None:
        """End a job whose lease the pilot has lost. Its payload is killed at once; no output is stored and no result reported."""
        log.info(
            "lease lost",
            job=holding.attempt_id.job_id,
            epoch=holding.attempt_id.epoch,
            running=holding.payload is not None,
        )
        holding.lost = True
        if holding.payload is None:
            self._holdings.drop(holding)
        else:
            holding.payload.kill(LOST, grace=0.0, keep_output=False)

    def kill(self, holding: LeasedJob) -> None:
        """End a job because its user ordered that, and report its end as killed.

        A job whose lease is not granted yet ends once it is.
        """
        holding.kill_ordered = True
        if holding.payload is not None:
            holding.payload.kill(KILLED)
        elif holding.expires_at is not None:
            self._finish_unbegun(holding, KILLED)

    def give_back(self, unbegun: list[LeasedJob]) -> None:
        """Return these jobs, whose payloads were not started, to the services, for other pilots. It does not count as an attempt."""
        for each in unbegun:
            self._holdings.drop(each)
        if unbegun:
            log.info("jobs given back", jobs=len(unbegun))
            self._reporter.decline([each.attempt_id for each in unbegun])

    def _finish_unbegun(self, holding: LeasedJob, reason: Reason) -> None:
        self._reporter.finish(not_begun(holding.attempt_id, reason))
        self._holdings.drop(holding)

    # --- payloads ---

    def fill(self) -> None:
        """Start queued jobs in their order while free slots and memory suffice. Jobs whose leases have ended are given back."""
        while (holding := self._holdings.next_to_start()) is not None:
            if holding.expires_at is None or now() >= holding.expires_at:
                self.give_back([holding])
            else:
                self.on_each([holding], self._begin)

    def stop_all(self, reason: Reason, *, grace: float = math.inf, keep_output: bool = True) -> None:
        """End every running payload for this reason: SIGTERM now, SIGKILL after its grace, at most `grace` seconds. The call returns at once.

        If `keep_output` is False, their outputs are not stored.
        """

        def stop(holding: LeasedJob) -> None:
            if holding.payload is not None:
                holding.payload.kill(reason, grace=grace, keep_output=keep_output)

        self.on_each(self._holdings.running, stop)

    def cancel(self) -> None:
        """Cancel the tasks of all payloads. That kills the payloads; their results are not reported."""
        for task in self._tasks:
            task.cancel()

    def _begin(self, holding: LeasedJob) -> None:
        assert self.group is not None
        payload = Payload(
            self._workplace,
            holding.attempt_id.job_id,
            holding.attempt_id.epoch,
            replace(holding.description, processors=holding.processors),
            owner=holding.owner,
            allotted=Allotment(processors=holding.processors, gpus=holding.gpus, cpus=holding.cpus),
        )
        payload.live_until(holding.expires_at)
        holding.payload, holding.began_at = payload, now()
        task = self.group.create_task(self._run(holding, payload), name=f"job {holding.attempt_id.job_id}")
        self._running.add(holding)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, holding: LeasedJob, payload: Payload) -> None:
        async def tell(_: int) -> None:
            self._reporter.start(holding.attempt_id)

        try:
            outcome = await payload.run(tell)
        except Exception as error:
            log.exception("payload failed in the agent", job=holding.attempt_id.job_id)
            outcome = PayloadOutcome(reason=agent_fault(error), began=payload.has_begun)
        self._end(holding, outcome)
        self._leave(payload)

    def _end(self, holding: LeasedJob, outcome: PayloadOutcome) -> None:
        self._holdings.drop(holding)
        self._running.discard(holding)
        self.ended += 1
        if outcome.reason.code is Code.LEASE_EXPIRED or holding.lost:
            log.warning("ended with its lease", job=holding.attempt_id.job_id, epoch=holding.attempt_id.epoch)
        else:
            self._tell_end(holding, outcome)
        self.fill()
        self._on_end()

    def _tell_end(self, holding: LeasedJob, outcome: PayloadOutcome) -> None:
        try:
            points = holding.payload.new_points() if holding.payload else ()
            usage = usage_of(holding.attempt_id, points) if points else None
            result = replace(
                result_of(holding.attempt_id, outcome),
                slot_seconds=now() - holding.began_at,
                retries=holding.description.retries_after(outcome.reason.code, outcome.exit_code),
            )
            self._reporter.finish(result, usage)
        except Exception as error:
            log.exception("result not reported", job=holding.attempt_id.job_id)
            self._reporter.finish(
                msgspec.structs.replace(
                    not_begun(holding.attempt_id, agent_fault(error)), began=outcome.began
                )
            )

    def _leave(self, payload: Payload) -> None:
        self._over.append(payload)
        if self._cleaning is None or self._cleaning.done():
            assert self.group is not None
            self._cleaning = self.group.create_task(self._clean(), name="cleaning")

    async def _clean(self) -> None:
        """Remove the directories of ended payloads, all that have ended so far at a time, until none is left. Errors are logged."""
        while self._over:
            over, self._over = self._over, []
            await asyncio.gather(*map(_cleaned, over))


async def _cleaned(payload: Payload) -> None:
    try:
        await payload.clean()
    except Exception as error:  # noqa: BLE001 - what one payload left cannot end the pilot
        log.warning("directory not removed", job=payload.job_id, error=str(error))
