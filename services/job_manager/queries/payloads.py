"""What the payload of an attempt may ask: about its own job, as long as its pilot holds the lease."""

from typing import Any, Final

import msgspec

from wms.auth.principal import Principal
from wms.db import job
from wms.db.database import Transaction
from wms.errors import Rejected
from wms.ids import Epoch, JobId, PilotId
from wms.lease import holds
from wms.messages import queries as asked

OF_ITS_JOB: Final = (asked.ShowJob, asked.WhyJob, asked.ShowLease)
"""The queries that a payload may send. Each names the job that it is about."""


async def acting(tx: Transaction, payload: Principal, query: Any) -> Principal:
    """Return as whom a payload's query is answered: for details of its job as the job's owner, who may do nothing else here.

    Raise Rejected: NOT_ALLOWED if the query is of another kind or about another job, NOT_HELD if the attempt has ended.
    """
    if not isinstance(query, OF_ITS_JOB) or query.job_id != payload.job_id:
        raise Rejected("NOT_ALLOWED", "a payload reads its own job, and nothing else", "use a user's token")
    job_id = JobId(query.job_id)
    found = (await job.read(tx, [job_id])).get(job_id)
    lease = found.lease if found else None
    is_held = holds(lease, PilotId(payload.pilot_id or ""), Epoch(payload.epoch or 0), await tx.now())
    if found is None or lease is None or lease.phase != "accepted" or not is_held:
        raise Rejected(
            "NOT_HELD", f"the attempt {payload.epoch} of job {job_id} has ended, and its token with it"
        )
    if isinstance(query, asked.ShowLease):
        _check_epoch(payload, query)
        return payload
    return msgspec.structs.replace(
        payload,
        kind="user",
        owner=found.owner,
        group=found.owner_group,
        vo=found.vo,
        actions=frozenset({"see", "see_detail"}),
    )


def _check_epoch(payload: Principal, query: asked.ShowLease) -> None:
    if query.epoch != payload.epoch:
        raise Rejected("NOT_HELD", "this is another attempt than the payload's")
