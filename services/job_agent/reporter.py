"""The reports of a pilot to the job manager. Events such as results are collected, sent together, and repeated until answered."""

import asyncio
import uuid
from collections.abc import Callable, Iterable
from typing import Literal

import msgspec
import structlog

from services.job_agent.link import AgentLink
from services.job_agent.payload.shepherd import now
from wms.errors import Rejected, Unavailable
from wms.ids import AttemptId, JobId, PilotId, ReportId
from wms.messages.reports import (
    CURVES_LIMIT,
    REFUSED_LIMIT,
    Report,
    Result,
    StagingReport,
    UsageOverTime,
)
from wms.messages.site_inbox import Answer
from wms.site import Told

log = structlog.get_logger()

RESEND_AFTER_SECONDS = 3.0
"""Seconds after which a report without an answer is sent again. The time doubles with each sending, up to four times this value."""
GATHER_SECONDS = 0.005
"""Seconds for which a report waits before it is sent, so that further events are sent with it."""
START_SECONDS = 0.1
"""The longest time in seconds for which the start of a payload waits for other events before it is reported.

Many short payloads have ended by then, so that start and result are in one report.
"""
RESULTS_SECONDS = 0.1
"""The least seconds between two reports with results, so that one report has many results of short jobs.

It doubles while earlier results have no answer.
"""
RESULTS_BYTES = 600_000
"""The most bytes of results in one report; further results go into the next. Kafka accepts messages of up to a megabyte."""
PASSING_KEPT = 3
"""How many unanswered reports are remembered that only renew leases or give the pilot's state. Beyond it the oldest are forgotten."""


class PilotStatus(msgspec.Struct, frozen=True):
    """The state of the pilot, which every report contains: its slots, busy slots, and free memory in MiB.

    `reason` says why it drains. `refused_orders` counts messages without a valid signature. `staging` has the progress of
    file transfers. `isolation` says how payloads are isolated on the node, whose measured attributes are `node`.
    """

    state: Literal["running", "draining", "ended"]
    slots: int
    busy: int
    reason: str = ""
    free_memory_mb: int | None = None
    refused_orders: int = 0
    staging: tuple[StagingReport, ...] = ()
    isolation: str = ""
    node: Told = ()


class ReportInFlight(msgspec.Struct):
    """A report without an answer yet, and when to send it again (`again_at`, in seconds since boot).

    `pause` is the number of seconds from the next sending to the one after it.
    """

    report: Report
    first_at: float
    """When the report was first sent, in seconds since boot. Leases that its answer grants begin at this time."""
    again_at: float
    pause: float = RESEND_AFTER_SECONDS

    @property
    def passing(self) -> bool:
        """Whether the report may be lost without harm: it only renews leases or gives the pilot's state, and the next one does so too."""
        told = self.report
        return not (told.accept or told.decline or told.start or told.finish or told.state == "ended")


class Reporter:
    """Collects the events of one job agent and sends them as reports to the job manager, through `link`.

    `standing` returns the pilot's present state, which every report contains. The methods for events return at once; `run`
    sends the reports.
    """

    def __init__(self, link: AgentLink, pilot_id: PilotId, standing: Callable[[], PilotStatus]) -> None:
        self._link = link
        self._pilot_id = pilot_id
        self._standing = standing
        self._accept: list[AttemptId] = []
        self._decline: list[AttemptId] = []
        self._start: list[AttemptId] = []
        self._renew: dict[AttemptId, None] = {}
        self._finish: list[tuple[Result, int]] = []
        self._usage: dict[JobId, UsageOverTime] = {}
        self._hello = False
        self._unanswered: dict[ReportId, ReportInFlight] = {}
        self._due = asyncio.Event()
        self._due_later: asyncio.Handle | None = None
        self._due_at = 0.0
        """The time of the event loop's clock at which `_due_later` fires. It is stored here because uvloop's handle does not always have it."""
        self._results_at = 0.0
        self._heard = asyncio.Event()

    # --- events to report ---

    def accept(self, attempt_ids: list[AttemptId]) -> None:
        """Report that the pilot accepts the offers of these attempts. The answer to the report grants their leases."""
        self._accept += attempt_ids
        self._due.set()

    def decline(self, attempt_ids: list[AttemptId]) -> None:
        """Report that the pilot returns these attempts: offers, or jobs with a lease whose payloads were not started."""
        self._decline += attempt_ids
        self._due.set()

    def start(self, attempt_id: AttemptId) -> None:
        """Report that the payload of this attempt runs. The report waits up to START_SECONDS for other events."""
        self._start.append(attempt_id)
        self._due_within(START_SECONDS)

    def renew(self, attempt_ids: list[AttemptId], usage: Iterable[UsageOverTime] = ()) -> None:
        """Ask for the renewal of these attempts' leases. `usage` has the CPU time and memory that running jobs used over time."""
        self._usage |= {each.job_id: each for each in usage}
        self._renew |= dict.fromkeys(attempt_ids)
        self._due.set()

    def finish(self, result: Result, usage: UsageOverTime | None = None) -> None:
        """Report the result of an attempt. `usage` has the CPU time and memory that it used over time; None: there is nothing new.

        Results within RESULTS_SECONDS share a report.
        """
        if usage is not None:
            self._usage[result.job_id] = usage
        self._finish.append((result, len(msgspec.json.encode(result))))
        self._results_due()

    def report_status(self) -> None:
        """Report the pilot's state, even if there is nothing else to report."""
        self._hello = True
        self._due.set()

    # --- sending ---

    @property
    def has_unanswered(self) -> bool:
        """Whether an event waits to be sent, or a report that must not be lost has no answer yet."""
        untold = self._accept or self._decline or self._start or self._finish or self._hello
        return bool(untold) or not all(sent.passing for sent in self._unanswered.values())

    async def wait_until_answered(self) -> None:
        """Wait until all events are sent and every report that must not be lost is answered. There is no time limit."""
        while self.has_unanswered:
            self._heard.clear()
            await self._heard.wait()

    async def run(self) -> None:
        """Send reports, and send those that must not be lost again until they are answered. It runs until cancelled."""
        while True:
            if await self._wait() and self._something:
                await self._send(self._next())
            for sent in [each for each in self._unanswered.values() if not each.passing]:
                if now() >= sent.again_at:
                    await self._send(sent)

    def send_all_again(self) -> None:
        """Make all unanswered reports due at once, because the connection broke. `run` then sends those that must not be lost."""
        for sent in self._unanswered.values():
            sent.again_at, sent.pause = 0.0, RESEND_AFTER_SECONDS
        self._due.set()

    def answered(self, answer: Answer) -> ReportInFlight | None:
        """Record an answer of the job manager and return the report that it answers.

        Return None if no such report is remembered, because it was answered before or forgotten.
        """
        sent = self._unanswered.pop(answer.report_id, None)
        self._heard.set()
        if self._finish:
            self._results_due()
        return sent

    @property
    def _something(self) -> bool:
        return bool(
            self._hello or self._accept or self._decline or self._start or self._renew or self._finish
        )

    def _results_due(self) -> None:
        unanswered = any(sent.report.finish for sent in self._unanswered.values())
        wait = self._results_at + RESULTS_SECONDS * (2 if unanswered else 1) - now()
        if wait > 0:
            self._due_within(wait)
        else:
            self._due.set()

    def _due_within(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        if self._due_later is not None:
            if self._due_at <= loop.time() + seconds:
                return
            self._due_later.cancel()
        self._due_at = loop.time() + seconds
        self._due_later = loop.call_later(seconds, self._fall_due)

    def _fall_due(self) -> None:
        if self._due_later is not None:
            self._due_later.cancel()
            self._due_later = None
        self._due.set()

    async def _wait(self) -> bool:
        """Wait until events are to be sent and return True. Return False after half a second without, to check unanswered reports."""
        try:
            async with asyncio.timeout(RESEND_AFTER_SECONDS / 6):
                await self._due.wait()
        except TimeoutError:
            return False
        await asyncio.sleep(GATHER_SECONDS)
        self._due.clear()
        return True

    def _next(self) -> ReportInFlight:
        standing = self._standing()
        report = Report(
            report_id=ReportId(uuid.uuid4().hex),
            pilot_id=self._pilot_id,
            decline=tuple(self._decline),
            accept=tuple(self._accept),
            start=tuple(self._start),
            renew=tuple(self._renew),
            finish=self._results(),
            state=standing.state,
            slots=standing.slots,
            busy=standing.busy,
            reason=standing.reason,
            free_memory_mb=standing.free_memory_mb,
            refused_orders=min(standing.refused_orders, REFUSED_LIMIT),
            staging=standing.staging,
            usage=self._curves(),
            isolation=standing.isolation,
            node=standing.node if self._hello or self._renew else (),
        )
        self._decline, self._accept, self._start = [], [], []
        self._renew, self._hello = {}, False
        sent = self._unanswered[report.report_id] = ReportInFlight(report, now(), now())
        if report.finish:
            self._results_at = sent.first_at
        self._forget_outdone()
        return sent

    def _curves(self) -> tuple[UsageOverTime, ...]:
        """Remove and return what jobs used over time: the latest CURVES_LIMIT entries. Older ones are dropped."""
        taken = tuple(self._usage.values())[-CURVES_LIMIT:]
        self._usage.clear()
        return taken

    def _results(self) -> tuple[Result, ...]:
        """Remove and return the oldest results, as many as RESULTS_BYTES allow, but at least one if there are any.

        The others stay for the next report.
        """
        taken, size = 0, 0
        for _, each in self._finish:
            size += each
            if taken and size > RESULTS_BYTES:
                break
            taken += 1
        results = tuple(result for result, _ in self._finish[:taken])
        del self._finish[:taken]
        if self._finish:
            self._due.set()
        return results

    def _forget_outdone(self) -> None:
        passing = [report_id for report_id, sent in self._unanswered.items() if sent.passing]
        for report_id in passing[:-PASSING_KEPT]:
            del self._unanswered[report_id]

    async def _send(self, sent: ReportInFlight) -> None:
        sent.again_at = now() + sent.pause
        sent.pause = min(sent.pause * 2, RESEND_AFTER_SECONDS * 4)
        try:
            await self._link.report(sent.report)
        except (Unavailable, Rejected) as error:
            log.warning("report not sent, will be again", report=sent.report.report_id, error=str(error))
