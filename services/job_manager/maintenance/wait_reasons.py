"""Computes every few seconds why the jobs of each task queue wait. A reason that changes is stored and sent as an event."""

import asyncio
import time
from collections.abc import Mapping

import numpy as np
import structlog

from wms.db import ce_state, limit, pilot, queue_stats, task_queue, wait_reason
from wms.db.database import Database, Transaction
from wms.db.queue_stats import QueueDepth
from wms.db.wait_reason import QueueWaitReason, ReportedReason
from wms.ids import TaskQueueId
from wms.job.wait_reason_codes import WaitCode
from wms.matching.binding import is_bound
from wms.matching.grouping import Requirements
from wms.matching.limits import LimitSet
from wms.messages import events
from wms.why.notices import shut_out
from wms.why.survey import Survey
from wms.why.wait_reason_text import PLACED, Judgement, QueueOutlook, judge, judge_private

log = structlog.get_logger()

SHARE_OF_TIME, SHARE_OF_DATABASE = 30, 5
"""The pause after a round of computing wait reasons, as a multiple of the processor time that the round took.

The second number is the least pause as a multiple of the round's whole duration.
"""
LONGEST_REST_SECONDS = 30.0
QUIET_SECONDS = 30.0
"""Seconds for which a new wait reason must hold before it replaces the stored one, if both are in SERVED.

Reasons in SERVED change often, as pilots become busy and idle.
"""
CHANCE_STEP = 0.1
SERVED = frozenset({WaitCode.HELD_BY_LIMIT, WaitCode.SLOTS_BUSY, WaitCode.BEHIND_OTHERS, WaitCode.SOON})
DEAD_QUEUES = 1_000


class WaitReasons:
    """Computes why task queues wait. Several processes may run it: one works at a time."""

    def __init__(self, db: Database) -> None:
        """Compute the reasons in this database."""
        self._db = db
        self._survey = Survey()
        self._numbers: dict[TaskQueueId, int] = {}
        self._placed: dict[TaskQueueId, Requirements] = {}
        """Queues of jobs that the broker placed. Each waits for the pilot sent for it, whatever other pilots there are."""
        self._faulty: set[TaskQueueId] = set()
        """Queues for which no reason can be computed because of a fault. They are left out, so that the other queues get theirs."""
        self._not_before = 0.0

    async def look(self) -> None:
        """Compute the reasons, store those that changed and send events on them. Nothing happens during the pause after a long round."""
        began, worked = time.monotonic(), time.process_time()
        if began < self._not_before:
            return
        await self._learn()
        async with self._db.transaction() as tx:
            changed = await self._look(tx) if await wait_reason.may_look(tx) else 0
        took = time.monotonic() - began
        # Mostly its own computing time counts: on a busy machine a longer pause would not help.
        rest = max(SHARE_OF_TIME * (time.process_time() - worked), SHARE_OF_DATABASE * took)
        self._not_before = began + min(rest, LONGEST_REST_SECONDS)
        if changed:
            log.info("reasons changed", queues=changed, seconds=round(took, 3))

    async def _look(self, tx: Transaction) -> int:
        waiting = await queue_stats.waiting(tx)
        if waiting is None:
            return 0
        told = await wait_reason.read(tx)
        await wait_reason.forget(tx, told.keys() - waiting.keys())
        news = [
            QueueWaitReason(tq_id=tq_id, code=judged.code, text=judged.text, chance=at.chance)
            for tq_id, (at, judged) in (await self._judged(tx, waiting)).items()
            if _is_news(told.get(tq_id), at, judged)
        ]
        await wait_reason.write(tx, news)
        changed = [each for each in news if each.tq_id not in told or told[each.tq_id].code != each.code]
        now = await tx.now()
        for each in changed:
            wanted = self._required(each.tq_id)
            fact = events.WaitReason(
                tq_id=each.tq_id,
                at=now,
                code=each.code,
                text=each.text,
                waiting=waiting[each.tq_id].jobs,
                owner=wanted.owner,
                owner_group=wanted.owner_group,
                vo=wanted.vo,
            )
            tx.send(events.TOPIC, f"tq-{each.tq_id}", fact)
        return len(changed)

    def _required(self, tq_id: TaskQueueId) -> Requirements:
        return self._placed.get(tq_id) or self._survey.requirements[self._numbers[tq_id]]

    async def _judged(
        self, tx: Transaction, waiting: Mapping[TaskQueueId, QueueDepth]
    ) -> dict[TaskQueueId, tuple[QueueOutlook, Judgement]]:
        jobs = np.zeros(len(self._survey.requirements), dtype=np.int64)
        weights = np.zeros(len(jobs))
        for tq_id, each in waiting.items():
            if (number := self._numbers.get(tq_id)) is not None:
                jobs[number], weights[number] = each.jobs, each.weight
        limits = LimitSet(limit.holding(await limit.sourced(tx)))
        closed = limits.full(await limit.all_counts(tx))
        # The queues for which it lacks are judged in later rounds.
        self._survey.effort.renew()
        standings = self._survey.standings(
            jobs,
            weights,
            await wait_reason.known(tx),
            await wait_reason.pilot_counts(tx),
            closed,
            shut_out(await ce_state.read(tx)),
        )
        private = await pilot.private(tx)
        for element, fault in self._survey.faults:
            log.error("element passed over", site=element.site, ce=element.ce, fault=fault)
        return dict.fromkeys(self._placed.keys() & waiting.keys(), (QueueOutlook(), PLACED)) | {
            tq_id: (at, judged)
            for tq_id in waiting
            if (number := self._numbers.get(tq_id)) is not None
            and number not in self._survey.undecided
            and (judged := self._judged_one(tq_id, at := standings[number], private)) is not None
        }

    def _judged_one(
        self, tq_id: TaskQueueId, at: QueueOutlook, private: Mapping[tuple[str, str, str], int]
    ) -> Judgement | None:
        judged, wanted = _judged(tq_id, at), self._survey.requirements[self._numbers[tq_id]]
        return judge_private(judged, wanted, private) if judged else None

    async def _learn(self) -> None:
        """Add new task queues to the survey. Rebuild it when most of its queues have no waiting jobs any more.

        Other work of the event loop is done between two queues. No transaction is open meanwhile: it could be idle for too long.
        """
        async with self._db.transaction() as tx:
            waiting = await queue_stats.waiting(tx) if await wait_reason.may_look(tx) else None
            if waiting is None:
                return
            self._faulty &= waiting.keys()
            self._placed = {tq_id: each for tq_id, each in self._placed.items() if tq_id in waiting}
            unknown = waiting.keys() - self._numbers.keys() - self._placed.keys() - self._faulty
            found = await task_queue.read(tx, unknown) if unknown else {}
        if len(self._numbers) > 2 * len(waiting) + DEAD_QUEUES:
            await self._number_anew(
                {tq_id: each for tq_id, each in self._numbered().items() if tq_id in waiting}
            )
        self._placed |= {tq_id: each for tq_id, each in found.items() if is_bound(each)}
        await self._number({tq_id: each for tq_id, each in found.items() if tq_id not in self._placed})

    async def _number(self, queues: Mapping[TaskQueueId, Requirements]) -> None:
        for tq_id, wanted in queues.items():
            try:
                self._survey.append(wanted)
            except Exception:
                log.exception("queue passed over", tq_id=tq_id)
                await self._leave_out(tq_id, queues)
                return
            self._numbers[tq_id] = len(self._numbers)
            await asyncio.sleep(0)

    async def _leave_out(self, faulty: TaskQueueId, queues: Mapping[TaskQueueId, Requirements]) -> None:
        """Rebuild the survey without the faulty queue, because adding it may have been completed in part."""
        found = {faulty}
        for tq_id, wanted in queues.items():
            if not _can_be_numbered(wanted):
                found.add(tq_id)
            await asyncio.sleep(0)
        self._faulty |= found
        whole = self._numbered() | dict(queues)
        await self._number_anew({tq_id: wanted for tq_id, wanted in whole.items() if tq_id not in found})

    async def _number_anew(self, queues: Mapping[TaskQueueId, Requirements]) -> None:
        former = self._survey  # what it has parsed is found again as long as it is there
        self._survey, self._numbers = Survey(), {}
        await self._number(queues)
        del former

    def _numbered(self) -> dict[TaskQueueId, Requirements]:
        return {tq_id: self._survey.requirements[number] for tq_id, number in self._numbers.items()}


def _can_be_numbered(wanted: Requirements) -> bool:
    try:
        Survey().append(wanted)
    except Exception:  # noqa: BLE001 - the queue's, whatever it is
        return False
    return True


def _judged(tq_id: TaskQueueId, at: QueueOutlook) -> Judgement | None:
    """Return why a queue waits; None if its judgement fails, which affects no other queue."""
    try:
        return judge(at)
    except Exception:
        log.exception("queue passed over", tq_id=tq_id)
        return None


def _is_news(told: ReportedReason | None, at: QueueOutlook, judged: Judgement) -> bool:
    if told is None:
        return True
    if told.code != judged.code:
        calm = told.code in SERVED and judged.code in SERVED
        return not calm or told.age_seconds >= QUIET_SECONDS
    return abs(at.chance - told.chance) > CHANCE_STEP
