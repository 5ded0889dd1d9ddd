"""The pilot's slots: payloads are begun as leases are granted, ended as they are ordered to, reported when they end."""

import asyncio
from collections.abc import Callable

import msgspec
import structlog
from msgspec.structs import replace

from services.job_agent.leased_jobs import LeasedJob, LeasedJobs
from services.job_agent.payload.outcome import PayloadOutcome, agent_fault, not_begun, result_of
from services.job_agent.payload.run import GRACE_SECONDS, Payload, Workplace
from services.job_agent.payload.shepherd import now
from services.job_agent.prefetch import Prefetch
from services.job_agent.reporter import Reporter
from wms.job.reasons import Code, Reason

log = structlog.get_logger()

KILLED = Reason(Code.KILLED_BY_USER, "killed on its user's order")
LOST = Reason(Code.LEASE_EXPIRED, "the lease was lost")


class Slots:
    """Runs what is held, within the task group it is given."""

    def __init__(
        self,
        workplace: Workplace,
        holdings: LeasedJobs,
        reporter: Reporter,
        pace: Prefetch,
        on_end: Callable[[], None],
    ) -> None:
        self._workplace = workplace
        self._holdings = holdings
        self._reporter = reporter
        self._pace = pace
        self._on_end = on_end
        self._tasks: set[asyncio.Task[None]] = set()
        self._running: set[LeasedJob] = set()
        """Those whose task will tell how they end."""
        self._over: list[Payload] = []
        self._cleaning: asyncio.Task[None] | None = None
        self.group: asyncio.TaskGroup | None = None

    # --- leases ---

    def on_each(self, holdings: list[LeasedJob], action: Callable[[LeasedJob], None]) -> None:
        """Do this to each; where it fails, only that job ends."""
        for holding in holdings:
            try:
                action(holding)
            except Exception as error:
                log.exception("job failed in the agent", job=holding.attempt_id.job_id)
                self._fail(holding, error)

    def _fail(self, holding: LeasedJob, error: Exception) -> None:
        """End one job for a fault of the agent's own, and say so once."""
        payload = holding.payload
        if payload is None or holding not in self._running:
            self._finish_unbegun(holding, agent_fault(error))
        else:
            payload.kill(agent_fault(error), grace=0.0)

    def grant(self, holding: LeasedJob, until: float) -> None:
        """A lease was granted, or goes on, until that time of the shepherd's clock."""
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
        """The lease is another's, or nobody's: stop at once, and say nothing more of it."""
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
        """Its user wants it ended; one that is not granted yet is ended when it is."""
        holding.kill_ordered = True
        if holding.payload is not None:
            holding.payload.kill(KILLED)
        elif holding.expires_at is not None:
            self._finish_unbegun(holding, KILLED)

    def give_back(self, unbegun: list[LeasedJob]) -> None:
        """Let others have these, which were not begun; that costs the jobs none of their attempts."""
        for each in unbegun:
            self._holdings.drop(each)
        if unbegun:
            log.info("given back", jobs=len(unbegun))
            self._reporter.decline([each.attempt_id for each in unbegun])

    def _finish_unbegun(self, holding: LeasedJob, reason: Reason) -> None:
        self._reporter.finish(not_begun(holding.attempt_id, reason))
        self._holdings.drop(holding)

    # --- payloads ---

    def fill(self) -> None:
        """Begin what stands in the line while there is room."""
        while (holding := self._holdings.next_to_start()) is not None:
            if holding.expires_at is None or now() >= holding.expires_at:
                self.give_back([holding])
            else:
                self.on_each([holding], self._begin)

    def stop_all(self, reason: Reason, *, grace: float = GRACE_SECONDS, keep_output: bool = True) -> None:
        """End every payload that runs."""

        def stop(holding: LeasedJob) -> None:
            if holding.payload is not None:
                holding.payload.kill(reason, grace=grace, keep_output=keep_output)

        self.on_each(self._holdings.running, stop)

    def cancel(self) -> None:
        """Kill what runs and forget it, unreported."""
        for task in self._tasks:
            task.cancel()

    def _begin(self, holding: LeasedJob) -> None:
        assert self.group is not None
        payload = self._workplace.payload(
            holding.attempt_id.job_id,
            holding.attempt_id.epoch,
            replace(holding.description, processors=holding.processors),
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
        if outcome.reason.code is Code.DONE:
            # One that failed at once says nothing of the others, and a node where all do must not ask for more and more.
            self._pace.ended(now() - holding.began_at)
        self._holdings.drop(holding)
        self._running.discard(holding)
        if outcome.reason.code is Code.LEASE_EXPIRED or holding.lost:
            log.warning("ended with its lease", job=holding.attempt_id.job_id, epoch=holding.attempt_id.epoch)
        else:
            self._tell_end(holding, outcome)
        self.fill()
        self._on_end()

    def _tell_end(self, holding: LeasedJob, outcome: PayloadOutcome) -> None:
        try:
            self._reporter.finish(result_of(holding.attempt_id, outcome))
        except Exception as error:
            log.exception("result not told", job=holding.attempt_id.job_id)
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
        """Remove what ended payloads left; of those that end meanwhile, all at once."""
        while self._over:
            over, self._over = self._over, []
            await asyncio.to_thread(_cleaned, over)


def _cleaned(over: list[Payload]) -> None:
    for payload in over:
        try:
            payload.clean()
        except Exception as error:  # noqa: BLE001 - what one payload left cannot end the pilot
            log.warning("directory not removed", job=payload.job_id, error=str(error))
