"""The job agent: asks for jobs while it has free slots, runs them under their leases, reports, drains, ends.

Control of a job passes in two phases. An offer is accepted by a report, and the payload starts only when the answer
grants the lease. From then on the shepherd holds a time by which it kills the payload by itself, counted from when the
accepting or renewing report was first sent, so that it has stopped before the server may give the job to another.
"""

import asyncio
import random
import uuid
from collections.abc import Sequence
from typing import Literal

import msgspec
import structlog

from services.job_agent.link import KafkaLink
from services.job_agent.payload import Outcome, Payload, Workplace
from services.job_agent.reporter import Reporter, Standing
from services.job_agent.resource import describe
from services.job_agent.shepherd import now
from wms.backoff import delays
from wms.errors import Unavailable
from wms.ids import Epoch, JobId, PilotId, RequestId
from wms.job.reasons import Code, Reason
from wms.jobdesc.array import expand
from wms.jobdesc.description import JobDescription
from wms.lease import stop_at
from wms.messages.reports import Peeked, Result
from wms.messages.requests import SLOTS_LIMIT, MatchRequest
from wms.messages.site_inbox import Answer, Held, Kill, NoMatch, Offer, OfferedJob, Peek, ToAgent
from wms.runtime.pilot_config import PilotConfig

log = structlog.get_logger()

REQUEST_SECONDS = 5.0
"""After so long without an answer a request is sent again, under its id."""
STOP_SECONDS = 1.0
"""What stopping a payload at the end of its lease may take, and the answer's processing."""
CUT_OFF_SECONDS = 900.0
"""An agent that could reach nobody for so long ends."""
AHEAD_LIMIT = 8
"""Jobs fetched ahead, a slot."""
LOST_CODES = frozenset({Code.PILOT_STOPPED, Code.AGENT_ERROR, Code.INPUT_FAILED})
"""Ends that are not the payload's doing: the job is tried again."""


class _Running(msgspec.Struct):
    """A job that the agent was offered, has accepted, or runs."""

    job: OfferedJob
    description: JobDescription
    processors: int
    expires_at: float
    """By the shepherd's clock."""
    granted_seconds: float = 0.0
    payload: Payload | None = None
    task: asyncio.Task[None] | None = None


class Agent:
    """One pilot's agent."""

    def __init__(self, config: PilotConfig, link: KafkaLink, workplace: Workplace) -> None:
        pilot = config.pilot
        self._config = config
        self._pilot_id = PilotId(pilot.pilot_id)
        self._link = link
        self._workplace = workplace
        self._jobs: dict[Held, _Running] = {}
        self._ready: list[Held] = []
        self._usual_seconds = 60.0
        self._reporter = Reporter(link, self._pilot_id, self._standing)
        self._request: MatchRequest | None = None
        self._offered_for: RequestId | None = None
        self._asked_at = 0.0
        self._ask_after = 0.0
        self._began_at = now()
        self._busy_at = now()
        self._draining = ""
        self._ended = asyncio.Event()
        self._wake = asyncio.Event()

    # --- its life ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until there is no more to do, or until told to drain."""
        await self._connect()
        self._reporter.tell_standing()
        loops = (self._reporter.run(), self._listen(), self._ask(), self._mind_leases(), self._watch_link())
        tasks = [asyncio.create_task(loop) for loop in loops]
        ending = asyncio.create_task(self._ended.wait())
        try:
            done, _ = await asyncio.wait([ending, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            await self._say_goodbye()
        finally:
            for task in (ending, *tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._link.close()

    def drain(self, reason: str) -> None:
        """Take no more; let what runs end within the grace, then give it back."""
        if self._draining:
            return
        self._draining = reason
        log.info("pilot drains", reason=reason, jobs=len(self._jobs))
        self._reporter.tell_standing()
        self._wake.set()
        asyncio.get_running_loop().call_later(self._config.pilot.grace_seconds, self._give_back)

    def abandon(self) -> None:
        """The system is gone: stop everything at once and end without a word."""
        log.warning("the system is gone", jobs=len(self._jobs))
        self._draining = "the system is gone"
        self._stop_all(Reason(Code.PILOT_STOPPED, self._draining), grace=0.0)
        self._ended.set()

    def _give_back(self) -> None:
        self._stop_all(Reason(Code.PILOT_STOPPED, f"the pilot stopped: {self._draining}"), grace=1.0)

    def _stop_all(self, reason: Reason, grace: float) -> None:
        for running in list(self._jobs.values()):
            if running.payload is not None:
                running.payload.kill(reason, grace=grace)

    async def _say_goodbye(self) -> None:
        self._reporter.tell_standing()
        try:
            await asyncio.wait_for(self._reporter.silence(), 5)
        except TimeoutError:
            log.warning("ended without the last answer")

    def _standing(self) -> Standing:
        state = "ended" if self._ended.is_set() else "draining" if self._draining else "running"
        return Standing(state, self._config.pilot.slots, self._used(), self._draining)

    def _used(self) -> int:
        """Slots that running payloads take."""
        return sum(running.processors for running in self._jobs.values() if running.payload is not None)

    def _wanted(self) -> int:
        """How many more jobs to ask for: what is free, and of short jobs some ahead."""
        slots = self._config.pilot.slots
        ahead = int(
            slots * min(AHEAD_LIMIT, self._config.pilot.ahead_seconds / max(self._usual_seconds, 0.01))
        )
        coming = sum(running.processors for running in self._jobs.values())
        # Half a refill at least, so that many short jobs do not mean many small requests.
        wanted = slots + ahead - coming
        return wanted if wanted > ahead // 2 else 0

    # --- asking -----------------------------------------------------------------------------------

    async def _ask(self) -> None:
        while not self._ended.is_set():
            pause = await self._ask_or_end()
            try:
                await asyncio.wait_for(self._wake.wait(), max(0.001, pause))
            except TimeoutError:
                continue
            finally:
                self._wake.clear()

    async def _ask_or_end(self) -> float:
        """Ask if it is time to; return the seconds until it is time to look again."""
        if self._jobs:
            self._busy_at = now()
        self._drain_if_due()
        if self._draining:
            if not self._jobs and not self._request:
                self._ended.set()
            if self._request and now() - self._asked_at > REQUEST_SECONDS:
                self._request = None
            return 0.2
        if self._request is not None:
            if now() - self._asked_at > REQUEST_SECONDS:
                await self._send_request()
            return REQUEST_SECONDS / 5
        if now() < self._ask_after or not self._wanted():
            return min(1.0, max(0.0, self._ask_after - now()) or 1.0)
        self._request = self._new_request()
        await self._send_request()
        return REQUEST_SECONDS / 5

    def _drain_if_due(self) -> None:
        pilot = self._config.pilot
        if not self._jobs and now() - self._busy_at > pilot.idle_seconds:
            self.drain(f"no job for {pilot.idle_seconds:g} s")
        elif now() - self._began_at > pilot.lifetime_seconds:
            self.drain(f"its life of {pilot.lifetime_seconds:g} s is over")

    def _new_request(self) -> MatchRequest:
        slots, wanted = self._config.pilot.slots, self._wanted()
        free = slots - sum(running.processors for running in self._jobs.values())
        # Jobs fetched ahead run in turn: each by itself must fit the pilot as a whole.
        packed = wanted <= free
        memory = sum(running.description.memory_mb or 0 for running in self._jobs.values()) if packed else 0
        left = self._config.pilot.lifetime_seconds - (now() - self._began_at)
        return MatchRequest(
            request_id=RequestId(uuid.uuid4().hex),
            pilot_id=self._pilot_id,
            resource=describe(
                self._config, free=free if packed else slots, memory_taken_mb=memory, seconds_left=left
            ),
            slots=min(wanted, SLOTS_LIMIT),
            packed=packed,
        )

    async def _send_request(self) -> None:
        assert self._request is not None
        self._asked_at = now()
        log.debug("asks", request=self._request.request_id, slots=self._request.slots)
        try:
            await self._link.ask(self._request)
        except Unavailable as error:
            log.warning("not asked, will be again", error=str(error))

    # --- being told -------------------------------------------------------------------------------

    async def _listen(self) -> None:
        while True:
            try:
                messages = await self._link.receive(0.5)
            except Unavailable:
                await asyncio.sleep(0.1)
                continue
            for message in messages:
                await self._take(message)

    async def _take(self, message: ToAgent) -> None:
        match message:
            case Offer():
                self._take_offer(message)
            case NoMatch():
                self._take_no_match(message)
            case Answer():
                self._take_answer(message)
            case Kill():
                for held in message.jobs:
                    self._kill(held)
            case Peek():
                await self._peek(message)

    def _take_offer(self, offer: Offer) -> None:
        held = [(job.job_id, job.epoch) for job in offer.jobs]
        log.debug("offered", request=offer.request_id, jobs=len(held))
        awaited = self._request is not None and offer.request_id == self._request.request_id
        if awaited:
            self._offered_for = offer.request_id
            self._request = None
        # A large offer comes in parts, of which the first ends the wait; what comes for an older request comes late.
        if self._draining or offer.request_id != self._offered_for:
            self._reporter.decline([each for each in held if each not in self._jobs])
        else:
            self._accept(offer)
        self._wake.set()

    def _accept(self, offer: Offer) -> None:
        taken: list[Held] = []
        for job in offer.jobs:
            held = (job.job_id, job.epoch)
            if held in self._jobs:
                continue
            description = expand(
                msgspec.json.decode(job.description, type=JobDescription), job.array_index or 0
            )
            # Not granted within the offer's time, it is somebody else's.
            self._jobs[held] = _Running(
                job=job,
                description=description,
                processors=description.processors,
                expires_at=now() + offer.hold_seconds,
            )
            taken.append(held)
        if taken:
            self._reporter.accept(taken)

    def _take_no_match(self, answer: NoMatch) -> None:
        if self._request is None or answer.request_id != self._request.request_id:
            return
        self._request = None
        spread = next(
            delays(
                answer.retry_after_seconds, answer.retry_after_seconds * 2, 1.0, random.SystemRandom().random
            )
        )
        self._ask_after = now() + max(spread, answer.retry_after_seconds / 2)
        log.debug("no match", code=answer.code, reason=answer.reason)
        self._wake.set()

    def _take_answer(self, answer: Answer) -> None:
        sent_at = self._reporter.answered(answer)
        if sent_at is None:
            return
        for held in answer.lost:
            self._lose(held)
        for held in answer.granted:
            self._grant(held, sent_at, answer.lease_seconds)
        for held in answer.kill:
            self._kill(held)
        if answer.drain:
            self.drain("the system asked for it")

    def _grant(self, held: Held, sent_at: float, lease_seconds: float) -> None:
        running = self._jobs.get(held)
        if running is None:
            return
        running.expires_at = stop_at(sent_at, lease_seconds, STOP_SECONDS)
        running.granted_seconds = lease_seconds
        if running.payload is not None:
            running.payload.live_until(running.expires_at)
        elif held not in self._ready:
            self._ready.append(held)
            self._start_ready()

    def _lose(self, held: Held) -> None:
        """The lease is another's, or nobody's: stop at once, and say nothing more of it."""
        running = self._jobs.get(held)
        if running is None:
            return
        log.warning("lease lost", job=held[0], epoch=held[1])
        if running.payload is None:
            self._forget(held)
        else:
            running.payload.kill(
                Reason(Code.LEASE_EXPIRED, "the lease was lost"), grace=0.0, keep_output=False
            )

    def _kill(self, held: Held) -> None:
        running = self._jobs.get(held)
        reason = Reason(Code.KILLED_BY_USER, "killed on its user's order")
        if running is None:
            return
        if running.payload is not None:
            running.payload.kill(reason)
        elif running.granted_seconds:
            self._reporter.finish(_result(held, Outcome(reason=reason)))
            self._forget(held)

    async def _peek(self, peek: Peek) -> None:
        running = self._jobs.get((peek.job_id, peek.epoch))
        if running is None or running.payload is None:
            return
        chunk = await running.payload.tail(peek.stream, peek.limit, peek.offset)
        peeked = Peeked(
            pilot_id=self._pilot_id,
            job_id=peek.job_id,
            epoch=peek.epoch,
            stream=peek.stream,
            offset=chunk.offset,
            size=chunk.total,
            text=chunk.data.decode("utf-8", "replace"),
            query_id=peek.query_id,
            client=peek.client,
            asker=peek.asker,
        )
        try:
            await self._link.report(peeked)
        except Unavailable as error:
            log.warning("not shown", job=peek.job_id, error=str(error))

    # --- running ----------------------------------------------------------------------------------

    def _start_ready(self) -> None:
        """Start granted jobs while slots are free, in the order they were granted; while draining give them back."""
        while self._ready:
            held = self._ready[0]
            running = self._jobs.get(held)
            if running is None:
                self._ready.pop(0)
            elif self._draining:
                self._ready.pop(0)
                reason = Reason(Code.PILOT_STOPPED, "the pilot drains")
                self._reporter.finish(_result(held, Outcome(reason=reason)))
                self._forget(held)
            elif self._used() + running.processors <= max(self._config.pilot.slots, running.processors):
                self._ready.pop(0)
                self._start(held, running)
            else:
                return

    def _start(self, held: Held, running: _Running) -> None:
        if now() >= running.expires_at:
            self._forget(held)
            return
        running.payload = self._workplace.payload(JobId(held[0]), Epoch(held[1]), running.description)
        running.payload.live_until(running.expires_at)
        running.task = asyncio.create_task(self._run_payload(held, running.payload))

    async def _run_payload(self, held: Held, payload: Payload) -> None:
        async def tell(_: int) -> None:
            self._reporter.start(held)

        began_at = now()
        try:
            outcome = await payload.run(tell)
            self._usual_seconds += 0.2 * (now() - began_at - self._usual_seconds)
            if outcome.reason.code is not Code.LEASE_EXPIRED:
                self._reporter.finish(_result(held, outcome))
        except Exception as error:
            log.exception("payload failed in the agent", job=held[0])
            reason = Reason(Code.AGENT_ERROR, f"{type(error).__name__}: {error}"[:500])
            self._reporter.finish(_result(held, Outcome(reason=reason)))
        finally:
            self._forget(held)
            await payload.clean()

    def _forget(self, held: Held) -> None:
        self._jobs.pop(held, None)
        self._start_ready()
        self._wake.set()

    # --- leases and the link ----------------------------------------------------------------------

    async def _mind_leases(self) -> None:
        """Renew at a third of the lease; drop offers that were not granted in time."""
        while True:
            granted = [each.granted_seconds for each in self._jobs.values() if each.granted_seconds]
            await asyncio.sleep(min(granted, default=3.0) / 3)
            self._drop_ungranted()
            held = [each for each, running in self._jobs.items() if running.granted_seconds]
            if held:
                self._reporter.renew(held)
            else:
                self._reporter.tell_standing()

    def _drop_ungranted(self) -> None:
        for held, running in list(self._jobs.items()):
            if running.payload is None and now() > running.expires_at:
                log.info("not begun in time", job=held[0])
                self._forget(held)

    async def _watch_link(self) -> None:
        reached_at = now()
        while True:
            await asyncio.sleep(1.0)
            try:
                await self._link.check()
                reached_at = now()
            except Unavailable as error:
                log.warning("link broken", error=str(error))
                if now() - reached_at > CUT_OFF_SECONDS:
                    self.abandon()
                await self._connect()
                reached_at = now()
                self._reporter.resend_all()
                self._asked_at = 0.0
                self._wake.set()

    async def _connect(self) -> None:
        for pause in delays(0.2, 5.0, 2.0, random.SystemRandom().random):
            try:
                await self._link.open()
            except Unavailable as error:
                log.warning("not connected", error=str(error))
                await asyncio.sleep(pause)
            else:
                return


def _result(held: Held, outcome: Outcome) -> Result:
    code = outcome.reason.code
    return Result(
        job_id=held[0],
        epoch=held[1],
        outcome=_outcome_of(code),
        code=code,
        text=_text(outcome),
        exit_code=outcome.exit_code,
        signal=outcome.signal,
        usage=outcome.usage,
        output_sha256=outcome.output.sha256 if outcome.output else None,
        output_bytes=outcome.output.size if outcome.output else 0,
        stdout_tail=outcome.stdout_tail[-4_096:],
        stderr_tail=outcome.stderr_tail[-4_096:],
    )


def _outcome_of(code: Code) -> Literal["done", "failed", "killed", "lost"]:
    if code is Code.DONE:
        return "done"
    if code is Code.KILLED_BY_USER:
        return "killed"
    return "lost" if code in LOST_CODES else "failed"


def _text(outcome: Outcome) -> str:
    parts = [outcome.reason.text]
    if outcome.unmatched:
        parts.append(f"no file matches {_some(outcome.unmatched)}")
    if outcome.refused:
        parts.append(f"not kept: {_some(outcome.refused)}")
    return "; ".join(part for part in parts if part)[:1_000]


def _some(lines: Sequence[str], most: int = 5) -> str:
    more = f" and {len(lines) - most} more" if len(lines) > most else ""
    return ", ".join(lines[:most]) + more
