"""Takes back what pilots hold no more: offers never taken, leases never renewed."""

import structlog

from services.job_manager.ledger import Ledger
from wms.db import attempt
from wms.db.attempt import Ended
from wms.db.database import Database, Transaction
from wms.ids import JobId
from wms.job.job import Job, lost
from wms.job.reasons import Code, Reason
from wms.lease import Terms

log = structlog.get_logger()

BATCH = 1_000


class Leases:
    """Sweeps expired leases; any number of instances may."""

    def __init__(self, db: Database, terms: Terms) -> None:
        self._db = db
        self._terms = terms

    async def sweep(self) -> bool:
        """Take back a batch; return whether there may be more."""
        async with self._db.transaction() as tx:
            job_ids = await attempt.expired(tx, BATCH)
            if job_ids:
                await self._take_back(tx, job_ids)
        return len(job_ids) == BATCH

    async def _take_back(self, tx: Transaction, job_ids: list[JobId]) -> None:
        ledger = await Ledger.open(tx, job_ids, self._terms.lease_seconds)
        now = await tx.now()
        taken = 0
        for job_id in job_ids:
            found = ledger.job(job_id)
            # Under its lock: renewed meanwhile, or taken back by another instance?
            if found is not None and found.lease is not None and found.lease.expires_at <= now:
                _take_one(ledger, found)
                taken += 1
        await ledger.write(tx, "job_manager")
        log.info("leases taken back", jobs=taken)


def _take_one(ledger: Ledger, found: Job) -> None:
    lease = found.lease
    assert lease is not None
    if lease.phase == "offered":
        reason = Reason(Code.OFFER_EXPIRED, f"pilot {lease.pilot_id} did not take it")
        outcome = "withdrawn"
    else:
        reason = Reason(Code.LEASE_EXPIRED, f"pilot {lease.pilot_id} was not heard of")
        outcome = "lost"
    ended = Ended(
        job_id=found.job_id,
        epoch=found.epoch,
        outcome=outcome,  # type: ignore[arg-type]
        reason=reason.code,
        text=reason.text,
    )
    ledger.end(found, ended, lost(found, reason))
