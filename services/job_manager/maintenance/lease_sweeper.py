"""Takes back jobs whose pilots did not accept the offer, or did not renew the lease, in time."""

from collections.abc import Callable, Mapping
from datetime import datetime

import structlog

from services.job_manager.job_batch import JobBatch
from wms.db import attempt, claim, pilot
from wms.db.attempt import AttemptEnd
from wms.db.database import GONE, RETRIED, Database, Transaction
from wms.db.pilot import Fate
from wms.ids import JobId, PilotId
from wms.job.job import Job, lost, never_offered
from wms.job.reasons import Code, Reason
from wms.jobdesc.offer_size import OFFER_LIMIT
from wms.lease import ClockStepDetector, Lease, LeaseDurations
from wms.messages.site_inbox import Offer
from wms.messages.wire import PAYLOAD_LIMIT, size

log = structlog.get_logger()

BATCH = 1_000
SET_ASIDE_SECONDS = 60.0


class LeaseSweeper:
    """Takes back jobs whose offer or lease has expired. Several processes may run it. `monotonic` returns monotonic seconds."""

    def __init__(self, db: Database, terms: LeaseDurations, monotonic: Callable[[], float]) -> None:
        self._db = db
        self._terms = terms
        self._monotonic = monotonic
        self._steps = ClockStepDetector()
        self._set_aside: dict[JobId, float] = {}
        """Jobs that could not be taken back because of a fault, with the time of the next try in monotonic seconds."""

    async def sweep(self) -> bool:
        """Take back a batch of jobs with expired offers or leases: each returns to its queue, is held or fails.

        Return whether there may be more.
        """
        async with self._db.transaction() as tx:
            await self._heed_clock(tx)
            job_ids = await attempt.expired(tx, BATCH)
        wanted = [each for each in job_ids if not self._is_set_aside(each)]
        if wanted:
            await self._take_back_or_divide(wanted)
        return len(wanted) == BATCH

    def _is_set_aside(self, job_id: JobId) -> bool:
        return job_id in self._set_aside and self._set_aside[job_id] > self._monotonic()

    async def _take_back_or_divide(self, job_ids: list[JobId]) -> None:
        """Take back all these jobs. If that fails, try smaller parts, so that a faulty job delays no other."""
        try:
            async with self._db.transaction() as tx:
                await self._take_back(tx, job_ids)
        except (*GONE, *RETRIED):
            raise
        except Exception:
            if len(job_ids) == 1:
                log.exception("a lease could not be taken back, and is set aside for a while", job=job_ids[0])
                self._set_aside[job_ids[0]] = self._monotonic() + SET_ASIDE_SECONDS
                return
            middle = len(job_ids) // 2
            await self._take_back_or_divide(job_ids[:middle])
            await self._take_back_or_divide(job_ids[middle:])

    async def _heed_clock(self, tx: Transaction) -> None:
        """Shift the ends of all leases if the database's clock was set, so that they neither end too soon nor too late."""
        step = self._steps.since(await tx.now(), self._monotonic())
        if step:
            log.warning("the database's clock was set", by_seconds=round(step, 1))
            await attempt.clock_set(tx, step, max(self._terms.lease_seconds, self._terms.offer_seconds))

    async def _take_back(self, tx: Transaction, job_ids: list[JobId]) -> None:
        job_batch = await JobBatch.open(tx, job_ids, self._terms.lease_seconds)
        now = await tx.now()
        # Read under their locks: a lease may have been renewed, or taken back by another instance.
        overdue = [found for each in job_ids if (found := job_batch.job(each)) and _is_over(found.lease, now)]
        fates = await pilot.fates(tx, {each.lease.pilot_id for each in overdue if each.lease})
        offered = [each.job_id for each in overdue if each.lease and each.lease.phase == "offered"]
        large = await self._too_large(tx, offered)
        for found in overdue:
            _take_one(job_batch, found, fates, large.get(found.job_id, 0))
        await job_batch.write(tx, "job_manager")
        log.info("leases taken back", jobs=len(overdue))

    async def _too_large(self, tx: Transaction, offered: list[JobId]) -> dict[JobId, int]:
        """Return those of the offered jobs whose offers are too large for a message, with the size in bytes. No pilot got such an offer."""
        # Jobs under the limit of submissions fit. For the few others the offer is built again, as by the matcher.
        sizes = {
            each.job_id: size(
                Offer(
                    pilot_id=each.pilot_id,
                    request_id=each.request_id,
                    jobs=(each.offered(),),
                    hold_seconds=self._terms.offer_seconds,
                )
            )
            for each in await claim.large_offers(tx, offered, OFFER_LIMIT)
        }
        return {job_id: taken for job_id, taken in sizes.items() if taken > PAYLOAD_LIMIT}


def _is_over(lease: Lease | None, now: datetime) -> bool:
    return lease is not None and lease.expires_at <= now


def _take_one(job_batch: JobBatch, found: Job, fates: Mapping[PilotId, Fate], too_large: int) -> None:
    lease = found.lease
    assert lease is not None
    fate = fates.get(lease.pilot_id)
    taken = lease.phase == "accepted"
    reason = Reason(_code(fate) if taken else Code.OFFER_EXPIRED, _words(lease, fate))
    ended = AttemptEnd(
        job_id=found.job_id,
        epoch=found.epoch,
        outcome="lost" if taken else "withdrawn",
        reason=reason.code,
        text=reason.text,
    )
    job_batch.end(found, ended, never_offered(found, too_large) if too_large else lost(found, reason))


def _code(fate: Fate | None) -> Code:
    if fate is None or not fate.ended:
        return Code.LEASE_EXPIRED
    return Code(fate.cause or Code.PILOT_DIED)


def _words(lease: Lease, fate: Fate | None) -> str:
    """Return a text on the pilot that lost a job. It says when the pilot's last message came, and what its computing element last reported of it."""
    what = "was not heard of" if lease.phase == "accepted" else "did not take it"
    if fate is None:
        return f"pilot {lease.pilot_id} {what}"
    words = [f"pilot {lease.pilot_id} at {fate.site}/{fate.ce} {what}"]
    if fate.seen_at is not None:
        words.append(f"it spoke last at {fate.seen_at:%H:%M:%S}")
    if fate.ended and fate.word and fate.word_at is not None:
        words.append(f"{fate.dispatcher} said at {fate.word_at:%H:%M:%S}: {fate.word}")
    return "; ".join(words)
