"""Applies the reports of job agents: accepted or declined offers, payloads that began or ended, renewed leases."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime

import msgspec
import structlog

from services.job_manager.believed_usage import believed
from services.job_manager.job_batch import PAYLOADS, JobBatch
from services.job_manager.queries.peek import job_output, peeking, told_from
from services.job_manager.run_times import RunTimeLearning
from services.job_manager.usage_accounting import UsageAccounting
from wms.auth.orders import OrderKeys
from wms.auth.principal import Principal
from wms.bus.consumer import Delivery
from wms.db import attempt, pilot, transfer
from wms.db.attempt import AttemptEnd
from wms.db.database import Transaction
from wms.db.pilot import PilotReport
from wms.db.transfer import MeasuredWay
from wms.ids import AttemptId, Epoch, JobId, PilotId, SiteName
from wms.job.job import Job, Outcome, ended, lost, started
from wms.job.reasons import Code, Reason
from wms.job.state import State
from wms.lease import LeaseDurations
from wms.matching.node_facts import for_plans
from wms.messages import replies
from wms.messages.reports import FromAgent, Peeked, Report, Result
from wms.messages.site_inbox import Answer, inbox

log = structlog.get_logger()


class Reports:
    """Applies reports of job agents to the database and answers them."""

    def __init__(
        self, terms: LeaseDurations, half_life_hours: float = 0.0, orders: OrderKeys | None = None
    ) -> None:
        """Make a handler. `terms` are the lengths of leases. `half_life_hours` is the half-life of recorded usage; 0: none is recorded.

        `orders` are the keys that prove who asked for a running job's output. Without them such output is dropped.
        """
        self._orders = orders
        self._terms = terms
        self._charging = UsageAccounting(half_life_hours)
        self._run_times = RunTimeLearning()

    async def handle(self, tx: Transaction, batch: list[Delivery[FromAgent]]) -> None:
        """Apply a batch of reports in this transaction and send an answer to each pilot.

        A report that names another pilot than its token is ignored. A running job's output, for which a user asked, is passed on to that user.
        """
        reports: list[tuple[Principal, Report]] = []
        for delivery in batch:
            principal, message = delivery.principal, delivery.message
            if principal is None or principal.kind != "pilot" or principal.pilot_id != message.pilot_id:
                log.warning("report refused: another pilot's token", pilot=message.pilot_id)
            elif isinstance(message, Peeked):
                await self._hand_on(tx, message)
            else:
                reports.append((principal, message))
        if reports:
            await self._apply(tx, reports)

    async def _apply(self, tx: Transaction, reports: list[tuple[Principal, Report]]) -> None:
        going = [report.pilot_id for _, report in reports if report.state == "ended"]
        left_behind = await attempt.of_pilots(tx, going) if going else []
        named = {job_id for _, report in reports for job_id in _named(report)}
        pilots = {report.pilot_id for _, report in reports}
        job_batch = await JobBatch.open_held(tx, named | set(left_behind), pilots, self._terms.lease_seconds)
        recorded = await attempt.recorded(tx, list(_unheld(job_batch, (report for _, report in reports))))
        before = frozenset(recorded)
        retried = {result.job_id for _, report in reports for result in report.finish if result.retries}
        failed = await attempt.failed(tx, sorted(retried))
        for principal, report in reports:
            answer = _Applied(job_batch, report, recorded, failed).apply()
            tx.reply(inbox(principal.site or ""), report.pilot_id, answer)
        for job_id in left_behind:
            _take_back(job_batch, job_id, frozenset(going))
        await transfer.note(tx, [(report.pilot_id, each) for _, report in reports for each in report.staging])
        await attempt.note_usage(
            tx, [(report.pilot_id, each) for _, report in reports for each in report.usage]
        )
        await transfer.keep(tx, list(_measured(reports, recorded - before)))
        await job_batch.write(tx, PAYLOADS)
        await self._charging.charge(tx, job_batch.ended())
        await self._run_times.learn(tx, job_batch.ended())
        await pilot.seen(tx, _seen(reports))

    async def _hand_on(self, tx: Transaction, peeked: Peeked) -> None:
        """Pass a running job's output on to the user who asked for it, if the pilot still holds the job."""
        if self._orders is None or not self._orders.is_ticket(peeked.ticket, *peeking(peeked)):
            log.warning("output refused: nobody asked for it", pilot=peeked.pilot_id, job=peeked.job_id)
            return
        job_batch = await JobBatch.open_held(tx, [peeked.job_id], [peeked.pilot_id], 0.0)
        if job_batch.held(peeked.attempt_id, peeked.pilot_id) is None:
            return
        output = job_output(peeked, peeked.text, peeked.offset, peeked.size, end=peeked.end, live=True)
        tx.send(*replies.address(peeked.asker, peeked.client), output)


def _named(report: Report) -> Iterable[JobId]:
    for attempt_id in (*report.decline, *report.accept, *report.start, *report.renew):
        yield attempt_id.job_id
    for staging in report.staging:
        yield staging.job_id
    for usage in report.usage:
        yield usage.job_id
    for result in report.finish:
        yield result.job_id


def _unheld(job_batch: JobBatch, reports: Iterable[Report]) -> Iterator[tuple[JobId, Epoch, PilotId]]:
    """Yield the reported ends of attempts that the reporting pilots do not hold. They may have been recorded by an earlier report."""
    for report in reports:
        for result in report.finish:
            if job_batch.held(result.attempt_id, report.pilot_id) is None:
                yield result.job_id, result.epoch, report.pilot_id


class _Applied:
    """Applies one report to a batch of locked jobs, and collects its answer."""

    def __init__(
        self, job_batch: JobBatch, report: Report, recorded: set[AttemptId], failed: Mapping[JobId, int]
    ) -> None:
        self._job_batch = job_batch
        self._failed = failed
        self._report = report
        self._before = recorded
        self._granted: list[AttemptId] = []
        self._lost: list[AttemptId] = []
        self._kill: list[AttemptId] = []
        self._recorded: list[AttemptId] = []

    def apply(self) -> Answer:
        """Apply all parts of the report in their order, and return the answer."""
        for attempt_id in self._report.decline:
            self._decline(attempt_id, self._report.reason)
        for attempt_id in self._report.accept:
            self._accept(attempt_id)
        for attempt_id in self._report.start:
            self._start(attempt_id)
        for attempt_id in self._report.renew:
            self._renew(attempt_id)
        for result in self._report.finish:
            self._finish(result)
        return Answer(
            pilot_id=self._report.pilot_id,
            report_id=self._report.report_id,
            granted=tuple(self._granted),
            lost=tuple(dict.fromkeys(self._lost)),
            kill=tuple(self._kill),
            recorded=tuple(self._recorded),
            lease_seconds=self._job_batch.lease_seconds,
        )

    def _decline(self, attempt_id: AttemptId, why: str) -> None:
        found = self._job_batch.held(attempt_id, self._report.pilot_id)
        # A granted job may be given back as well, before its payload begins.
        if found is not None and found.state is State.MATCHED:
            reason = Reason(Code.OFFER_DECLINED, why)
            self._job_batch.end(found, _ended(attempt_id, "withdrawn", reason), lost(found, reason))

    def _accept(self, attempt_id: AttemptId) -> None:
        found = self._job_batch.held(attempt_id, self._report.pilot_id)
        if found is None:
            self._lost.append(attempt_id)
        elif found.stop_requested:
            reason = Reason(Code.OFFER_DECLINED, f"{found.stop_requested} was asked for before it began")
            self._job_batch.end(found, _ended(attempt_id, "withdrawn", reason), lost(found, reason))
            self._lost.append(attempt_id)
        else:
            self._job_batch.accept(found)
            self._granted.append(attempt_id)

    def _start(self, attempt_id: AttemptId) -> None:
        found = self._job_batch.held(attempt_id, self._report.pilot_id)
        if found is None or found.lease is None or found.lease.phase != "accepted":
            if attempt_id not in self._before:
                self._lost.append(attempt_id)
            return
        self._job_batch.move(found, started(found))

    def _renew(self, attempt_id: AttemptId) -> None:
        found = self._job_batch.held(attempt_id, self._report.pilot_id)
        if found is None or found.lease is None or found.lease.phase != "accepted":
            self._lost.append(attempt_id)
            return
        self._job_batch.renew(found)
        self._granted.append(attempt_id)
        if found.stop_requested:
            self._kill.append(attempt_id)

    def _finish(self, result: Result) -> None:
        attempt_id = result.attempt_id
        if attempt_id in self._before:
            self._recorded.append(attempt_id)
            return
        found = self._job_batch.held(attempt_id, self._report.pilot_id)
        if found is None or found.lease is None or found.lease.phase != "accepted":
            self._lost.append(attempt_id)
            return
        result = believed(result, self._job_batch.held_seconds(found))
        reason = Reason(result.code, result.text)
        steps = ended(found, result.outcome, reason, began=_has_run(result), retry=self._retry(found, result))
        self._job_batch.end(found, _result(result, began=found.has_begun or _has_run(result)), steps)
        self._before.add(attempt_id)
        self._recorded.append(attempt_id)

    def _retry(self, found: Job, result: Result) -> Reason | None:
        """Return the reason with which a job that failed starts again; None if it has no retries left."""
        failed = self._failed.get(found.job_id, 0)
        if failed >= result.retries or found.attempts >= found.max_attempts:
            return None
        return Reason(result.code, f"{result.text}; it starts again, {failed + 1} of {result.retries} times")


def _ended(attempt_id: AttemptId, outcome: Outcome, reason: Reason) -> AttemptEnd:
    return AttemptEnd(
        job_id=attempt_id.job_id,
        epoch=attempt_id.epoch,
        outcome=outcome,
        reason=reason.code,
        text=reason.text,
    )


def _result(result: Result, *, began: bool) -> AttemptEnd:
    return AttemptEnd(
        job_id=result.job_id,
        epoch=result.epoch,
        outcome=result.outcome,
        reason=result.code,
        text=result.text,
        exit_code=result.exit_code,
        signal=result.signal,
        # A payload that never began used nothing, whatever its pilot reports.
        usage=result.usage if began else None,
        output_sha256=result.output_sha256,
        output_bytes=result.output_bytes or None,
        stdout_tail=result.stdout_tail,
        stderr_tail=result.stderr_tail,
        stdout_from=told_from(result.stdout_tail, result.stdout_from),
        stderr_from=told_from(result.stderr_tail, result.stderr_from),
        ran=_has_run(result),
        slot_seconds=result.slot_seconds or result.usage.wall_seconds,
    )


def _has_run(result: Result) -> bool:
    return result.began and result.code not in (Code.NOT_STARTED, Code.INPUT_FAILED)


def _measured(
    reports: Iterable[tuple[Principal, Report]], recorded: Collection[AttemptId]
) -> Iterator[MeasuredWay]:
    """Yield the file transfers that attempts measured, with the site from the pilot's token. Only attempts in `recorded` count."""
    for principal, report in reports:
        for result in report.finish:
            if result.attempt_id in recorded and principal.site:
                yield from (MeasuredWay(SiteName(principal.site), each) for each in result.transfers)


def _take_back(job_batch: JobBatch, job_id: JobId, pilots: frozenset[PilotId]) -> None:
    """Take back a job from a pilot that has ended, if the pilot is among `pilots`."""
    found = job_batch.job(job_id)
    if found is None or found.lease is None or found.lease.pilot_id not in pilots:
        return
    reason = Reason(Code.PILOT_STOPPED, f"pilot {found.lease.pilot_id} ended")
    outcome: Outcome = "lost" if found.lease.phase == "accepted" else "withdrawn"
    job_batch.end(found, _ended(AttemptId(job_id, found.epoch), outcome, reason), lost(found, reason))


def _seen(reports: Iterable[tuple[Principal, Report]]) -> list[PilotReport]:
    last: dict[PilotId, PilotReport] = {}
    for principal, report in reports:
        before = last.get(report.pilot_id)
        last[report.pilot_id] = PilotReport(
            pilot_id=report.pilot_id,
            state=report.state,
            slots=report.slots,
            busy=report.busy,
            done=len(report.finish) + (before.done if before else 0),
            reason=report.reason,
            free_memory_mb=report.free_memory_mb,
            refused_orders=report.refused_orders,
            token_until=datetime.fromtimestamp(principal.expires_at, UTC),
            isolation=report.isolation,
            node=msgspec.json.encode(for_plans(report.node)).decode() if report.node else "",
        )
    return [last[each] for each in sorted(last)]
