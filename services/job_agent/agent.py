"""The job agent of one pilot: requests jobs while slots are free, runs them under leases, reports, drains and ends.

A job passes to the agent in two steps. A report accepts the offer, and the payload starts only when the answer to that report
grants the lease. From then on the shepherd (a process beside the agent that starts payloads) kills the payload when the lease
ends. The agent counts the lease from the first sending of the report that accepted or renewed it. So the payload has ended
before another pilot may get the job.
"""

import asyncio
import contextlib
import random

import structlog

from services.job_agent.leased_jobs import LeasedJob, LeasedJobs
from services.job_agent.link import AgentLink
from services.job_agent.match_requests import MatchRequests
from services.job_agent.node import gpu_names, measure, node_properties, own_cpus
from services.job_agent.payload.run import Payload
from services.job_agent.payload.shepherd import now
from services.job_agent.payload.workplace import Workplace
from services.job_agent.reporter import PilotStatus, Reporter
from services.job_agent.resource import memory_mb, proved
from services.job_agent.slots import Slots
from wms.backoff import delays
from wms.errors import Unavailable
from wms.ids import AttemptId, PilotId
from wms.job.reasons import Code, Reason
from wms.lease import renewal_seconds, stop_at
from wms.messages.reports import CURVES_LIMIT, Peeked
from wms.messages.site_inbox import Answer, Kill, NoMatch, Offer, Peek, ToAgent, TokenRenewal
from wms.output_text import decoded
from wms.runtime.pilot_config import PilotConfig

log = structlog.get_logger()

STOP_SECONDS = 1.0
"""How many seconds before the end of its lease a payload is killed, so that it has ended when the lease ends."""
CHECK_SECONDS = 1.0
"""Seconds between two checks of the connection to the services. A broken one is opened again."""
IDLE_REPORT_SECONDS = 5.0
PATIENCE = 5
"""How many times `ahead_seconds` jobs wait here behind jobs that prove long, until they are given back. A busy node may pause for seconds."""
CUT_OFF_SECONDS = 900.0
"""Seconds without any message from the services after which an agent drains, if no payload runs."""
GOODBYE_SECONDS = 5.0


class Agent:
    """The job agent of one pilot. It passes messages between the services and its slots, leases, match requests and reports.

    `link` sends and receives messages; `workplace` has what payloads need to run here: directories, store and shepherd.
    """

    def __init__(self, config: PilotConfig, link: AgentLink, workplace: Workplace) -> None:
        self._pilot = config.pilot
        self._pilot_id = PilotId(config.pilot.pilot_id)
        self._link = link
        self._workplace = workplace
        self._holdings = LeasedJobs(
            config.pilot.slots, memory_mb(config), gpu_names(), own_cpus(config.pilot.slots)
        )
        self._reporter = Reporter(link, self._pilot_id, self._standing)
        words = workplace.isolation_words, workplace.limit_words, workplace.image_words
        log.info("payload isolation", isolation=words[0], limits=words[1], no_cgroups=workplace.cgroups.fault)
        self._node = node_properties(config, measure(config, *words))
        config = proved(
            config, runs_containers=workplace.images is not None, cuts_network=workplace.cuts_network
        )
        self._asking = MatchRequests(config, link, self._holdings, self._node)
        self._changed = asyncio.Event()
        self._slots = Slots(workplace, self._holdings, self._reporter, self._changed.set)
        self._lease_seconds = 30.0
        self._busy_at = self._heard_at = now()
        self._draining = ""
        self._drains_until = 0.0
        self._ended = asyncio.Event()
        self._peeks: set[asyncio.Task[None]] = set()

    # --- its life ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Request and run jobs until the pilot has drained. Call it once.

        Payloads that still run at the end are killed. An error in one of the agent's tasks ends it and is raised in an
        ExceptionGroup.
        """
        loops = (
            self._reporter.run(),
            self._keep_link(),
            self._listen(),
            self._work(),
            self._mind_leases(),
            self._workplace.watch(),
        )
        try:
            async with asyncio.TaskGroup() as group:
                self._slots.group = group
                tasks = [group.create_task(loop) for loop in loops]
                await self._ended.wait()
                await self._say_goodbye()
                for task in (*tasks, *self._peeks):
                    task.cancel()
                self._slots.cancel()
        finally:
            await self._hang_up()

    def drain(self, reason: str) -> None:
        """Take no more jobs, return those that are not started, and end running payloads after the pilot's `grace_seconds`.

        They get SIGTERM then, and SIGKILL `stop_seconds` after this call at the latest. `reason` is a text that is reported. A second call has no effect. The call returns at once.
        """
        if self._draining:
            return
        self._draining = reason
        self._drains_until = (
            now() + max(self._pilot.stop_seconds, self._pilot.grace_seconds) + GOODBYE_SECONDS
        )
        log.info("pilot drains", reason=reason, jobs=len(self._holdings))
        self._reporter.report_status()
        self._slots.give_back(self._holdings.line)
        asyncio.get_running_loop().call_later(self._pilot.grace_seconds, self._stop_payloads)
        self._changed.set()

    def told_to_end(self) -> None:
        """Process SIGTERM or SIGINT. The first signal drains the pilot; the second kills all payloads at once.

        After the second one the agent ends within a few seconds, and no outputs are stored.
        """
        if not self._draining:
            self.drain("told to end")
        else:
            self._drains_until = now() + GOODBYE_SECONDS
            self._slots.stop_all(self._stopped, grace=0.0, keep_output=False)

    @property
    def _stopped(self) -> Reason:
        return Reason(Code.PILOT_STOPPED, f"the pilot stopped: {self._draining}")

    def _stop_payloads(self) -> None:
        grace = max(0.0, self._pilot.stop_seconds - self._pilot.grace_seconds)
        self._slots.stop_all(self._stopped, grace=grace)

    async def _say_goodbye(self) -> None:
        if not self._link.is_open:
            return
        self._reporter.report_status()
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self._reporter.wait_until_answered()
        except TimeoutError:
            log.warning("ended without an answer to the last report")

    async def _hang_up(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self._link.close()

    def _standing(self) -> PilotStatus:
        state = "ended" if self._ended.is_set() else "draining" if self._draining else "running"
        return PilotStatus(
            state,  # type: ignore[arg-type]
            self._pilot.slots,
            self._holdings.busy,
            self._draining,
            self._holdings.free_memory_mb,
            self._link.refused,
            self._holdings.staging,
            self._workplace.reported_isolation,
            self._node,
        )

    # --- working ----------------------------------------------------------------------------------

    async def _work(self) -> None:
        """Drain, start jobs, give them back and request new ones, again and again until the agent has ended.

        Each round follows a change, such as a message or the end of a job, or a pause if nothing changes.
        """
        while not self._ended.is_set():
            pause = await self._look_around()
            try:
                async with asyncio.timeout(max(0.001, pause)):
                    await self._changed.wait()
            except TimeoutError:
                continue
            finally:
                self._changed.clear()

    async def _look_around(self) -> float:
        """Do one round: start, give back and request jobs as needed. Return the seconds until the next round at the latest.

        While the pilot drains, it only checks whether the agent can end.
        """
        self._drain_if_due()
        if self._draining:
            self._end_if_done()
            return 0.1
        self._slots.fill()
        patience = PATIENCE * self._pilot.ahead_seconds
        if not self._asking.ahead_seconds:
            # The bet that jobs are short was lost: others may have them.
            self._slots.give_back(self._holdings.stale(now() - patience))
        pause = await self._asking.ask()
        return min(pause, patience) if self._holdings.line else pause

    def _drain_if_due(self) -> None:
        most = self._pilot.most_jobs
        if most and self._slots.ended >= most and not len(self._holdings):
            self.drain("it has had its job" if most == 1 else f"it has had its {most} jobs")
        if len(self._holdings) or self._reporter.has_unanswered or not self._asking.refused_last:
            self._busy_at = now()
        if now() - self._busy_at > self._pilot.idle_seconds:
            self.drain(f"no job for {self._pilot.idle_seconds:g} s")
        elif self._asking.seconds_left < 0:
            self.drain(f"its life of {self._pilot.lifetime_seconds:g} s is over")
        elif not self._holdings.running and now() - self._heard_at > CUT_OFF_SECONDS:
            self.drain(f"nothing was heard for {CUT_OFF_SECONDS:g} s")

    def _end_if_done(self) -> None:
        if not len(self._holdings) and not self._asking.waiting:
            self._ended.set()
        elif now() > self._drains_until:
            log.warning("jobs left behind", jobs=len(self._holdings))
            self._ended.set()

    # --- being told -------------------------------------------------------------------------------

    async def _listen(self) -> None:
        while True:
            try:
                messages = await self._link.receive(0.5)
            except Unavailable:
                await asyncio.sleep(0.1)
                continue
            for message in messages:
                self._take_safely(message)
            if messages:
                self._heard_at = now()
                self._slots.fill()
                self._changed.set()

    def _take_safely(self, message: ToAgent) -> None:
        """Process a message from the services. If that raises an error, log it and drop the message.

        A job whose message is lost is settled by its lease: the lease is renewed or ends.
        """
        try:
            self._take(message)
        except Exception:
            log.exception("message dropped", message=type(message).__name__)

    def _take(self, message: ToAgent) -> None:
        match message:
            case Offer():
                self._take_offer(message)
            case NoMatch():
                self._asking.refused(message)
            case Answer():
                self._take_answer(message)
            case Kill():
                self._slots.on_each(self._held(message.jobs), self._slots.kill)
            case Peek():
                self._peek(message)
            case TokenRenewal():
                self._link.renew(message)

    def _take_offer(self, offer: Offer) -> None:
        if not self._asking.expects(offer):
            log.warning("offer passed over: nobody asked for it", request=offer.request_id)
            return
        log.debug("offered", request=offer.request_id, jobs=len(offer.jobs))
        taken, left = self._asking.sort(offer)
        if self._draining:
            taken, left = [], taken + left
        if taken:
            self._reporter.accept([self._holdings.take(each).attempt_id for each in taken])
        if left:
            self._reporter.decline([each.attempt_id for each in left])

    def _take_answer(self, answer: Answer) -> None:
        sent = self._reporter.answered(answer)
        if sent is None:
            return
        self._slots.on_each(self._held(answer.lost), self._slots.lose)
        for result in sent.report.finish:
            if (result.job_id, result.epoch) in answer.lost:
                log.warning("result refused", job=result.job_id, epoch=result.epoch, code=result.code)
        self._lease_seconds = answer.lease_seconds or self._lease_seconds
        until = stop_at(sent.first_at, answer.lease_seconds, STOP_SECONDS)
        self._slots.on_each(self._held(answer.granted), lambda each: self._slots.grant(each, until))
        self._slots.on_each(self._held(answer.kill), self._slots.kill)
        if answer.drain:
            self.drain("the system asked for it")
        if self._draining:
            self._slots.give_back(self._holdings.line)

    def _held(self, named: tuple[AttemptId, ...]) -> list[LeasedJob]:
        return [holding for each in named if (holding := self._holdings.get(each)) is not None]

    def _peek(self, peek: Peek) -> None:
        holding = self._holdings.get(peek.attempt_id)
        if holding is not None and holding.payload is not None:
            task = asyncio.create_task(self._show(peek, holding.payload))
            self._peeks.add(task)
            task.add_done_callback(self._peeks.discard)

    async def _show(self, peek: Peek, payload: Payload) -> None:
        try:
            chunk = await payload.tail(peek.stream, peek.limit, peek.offset)
            # Of a character that is cut at the end, the next part has the whole.
            text, used = decoded(chunk.data, is_end=False)
            peeked = Peeked(
                pilot_id=self._pilot_id,
                job_id=peek.job_id,
                epoch=peek.epoch,
                stream=peek.stream,
                offset=chunk.offset,
                size=chunk.total,
                text=text,
                query_id=peek.query_id,
                client=peek.client,
                asker=peek.asker,
                ticket=peek.ticket,
                raw=peek.raw,
                end=chunk.offset + used,
            )
            await self._link.report(peeked)
        except Exception as error:  # noqa: BLE001 - who asked for it asks again
            log.warning("output not shown", job=peek.job_id, error=str(error))

    # --- leases and the link ----------------------------------------------------------------------

    async def _mind_leases(self) -> None:
        """Ask for the renewal of all leases at a third of their length. Without leases, report the pilot's state every 5 seconds.

        It runs until cancelled.
        """
        renewed_at = now()
        while True:
            await asyncio.sleep(min(self._lease_seconds / 30, 1.0))
            if now() - renewed_at >= self._renew_every:
                renewed_at = now()
                self._renew()

    @property
    def _renew_every(self) -> float:
        return renewal_seconds(self._lease_seconds) if self._holdings.granted else IDLE_REPORT_SECONDS

    def _renew(self) -> None:
        granted = [holding.attempt_id for holding in self._holdings.granted]
        if granted:
            self._reporter.renew(granted, self._holdings.usage(CURVES_LIMIT))
        else:
            self._reporter.report_status()

    async def _keep_link(self) -> None:
        """Open the connection to the services, and again whenever it is broken. It runs until cancelled.

        After each opening, unanswered reports and the unanswered match request are sent again.
        """
        while True:
            await self._connect()
            # What was said into the void is said again; what was missed is asked for.
            self._reporter.send_all_again()
            self._asking.ask_again()
            self._renew()
            self._changed.set()
            await self._until_broken()

    async def _until_broken(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                await self._link.check()
            except Unavailable as error:
                log.warning("link broken", error=str(error))
                return

    async def _connect(self) -> None:
        for pause in delays(0.2, 2.0, 2.0, random.SystemRandom().random):
            try:
                await self._link.open()
            except Unavailable as error:
                log.warning("services not reached", error=str(error))
                await asyncio.sleep(pause)
            else:
                return
