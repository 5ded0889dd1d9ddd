"""Reports: collected while they are few, sent together, and sent again until they are answered."""

import asyncio
import uuid
from collections.abc import Callable

import msgspec
import structlog

from services.job_agent.link import KafkaLink
from services.job_agent.shepherd import now
from wms.errors import Unavailable
from wms.ids import PilotId, ReportId
from wms.messages.reports import Report, Result
from wms.messages.site_inbox import Answer, Held

log = structlog.get_logger()

RESEND_AFTER_SECONDS = 3.0
GATHER_SECONDS = 0.002
"""What happens within so little goes into one report."""
RESULTS_IN_A_REPORT = 60
"""Each may carry two tails of 4,096 characters, which escaped may be six times as long: under the limit of a message."""


class Standing(msgspec.Struct, frozen=True):
    """What every report says of the pilot itself."""

    state: str
    slots: int
    busy: int
    reason: str = ""


class _Sent(msgspec.Struct):
    report: Report
    first_sent_at: float
    sent_at: float


class Reporter:
    """What an agent has to tell."""

    def __init__(self, link: KafkaLink, pilot_id: PilotId, standing: Callable[[], Standing]) -> None:
        self._link = link
        self._pilot_id = pilot_id
        self._standing = standing
        self._accept: list[Held] = []
        self._decline: list[Held] = []
        self._start: list[Held] = []
        self._renew: list[Held] = []
        self._finish: list[Result] = []
        self._hello = False
        self._unanswered: dict[ReportId, _Sent] = {}
        self._wake = asyncio.Event()
        self._heard = asyncio.Event()

    def accept(self, held: list[Held]) -> None:
        """Take offers."""
        self._accept += held
        self._wake.set()

    def decline(self, held: list[Held]) -> None:
        """Give offers back."""
        self._decline += held
        self._wake.set()

    def start(self, held: Held) -> None:
        """Say that a payload runs; it may wait for the next report."""
        self._start.append(held)
        self._wake.set()

    def renew(self, held: list[Held]) -> None:
        """Ask for leases to go on."""
        self._renew += held
        self._wake.set()

    def finish(self, result: Result) -> None:
        """Say how a payload ended."""
        self._finish.append(result)
        self._wake.set()

    def tell_standing(self) -> None:
        """Say how the pilot does, with whatever else there is to say."""
        self._hello = True
        self._wake.set()

    async def silence(self) -> None:
        """Wait until nothing is left to be told and everything told was answered."""
        while self._unanswered or self._something:
            self._heard.clear()
            await self._heard.wait()

    @property
    def _something(self) -> bool:
        parts = (self._accept, self._decline, self._start, self._renew, self._finish)
        return self._hello or any(parts)

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            await self._wait()
            while self._something:
                report = self._next()
                at = now()
                self._unanswered[report.report_id] = _Sent(report, at, at)
                await self._send(report)
            await self._resend()

    async def _wait(self) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), RESEND_AFTER_SECONDS / 3)
            await asyncio.sleep(GATHER_SECONDS)
        except TimeoutError:
            return
        finally:
            self._wake.clear()

    def _next(self) -> Report:
        finish, self._finish = self._finish[:RESULTS_IN_A_REPORT], self._finish[RESULTS_IN_A_REPORT:]
        standing = self._standing()
        report = Report(
            report_id=ReportId(uuid.uuid4().hex),
            pilot_id=self._pilot_id,
            decline=tuple(self._decline),
            accept=tuple(self._accept),
            start=tuple(self._start),
            renew=tuple(self._renew),
            finish=tuple(finish),
            state=standing.state,  # type: ignore[arg-type]
            slots=standing.slots,
            busy=standing.busy,
            reason=standing.reason,
        )
        self._decline, self._accept, self._start, self._renew, self._hello = [], [], [], [], False
        return report

    async def _resend(self) -> None:
        for sent in list(self._unanswered.values()):
            if now() - sent.sent_at > RESEND_AFTER_SECONDS:
                sent.sent_at = now()
                await self._send(sent.report)

    async def _send(self, report: Report) -> None:
        try:
            await self._link.report(report)
        except Unavailable as error:
            log.warning("report not sent, will be again", report=report.report_id, error=str(error))

    def resend_all(self) -> None:
        """Send everything unanswered again: the broker that had it is gone."""
        for sent in self._unanswered.values():
            sent.sent_at = 0.0
        self._wake.set()

    def answered(self, answer: Answer) -> float | None:
        """Take note of an answer; return when its report was first sent, or None if it was answered before."""
        sent = self._unanswered.pop(answer.report_id, None)
        self._heard.set()
        return sent.first_sent_at if sent else None
