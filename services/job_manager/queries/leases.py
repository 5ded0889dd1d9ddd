"""Answers about leases, to the pilots that hold them and their payloads: by them the gateway knows which files they may read and write."""

import msgspec

from wms.auth.principal import Principal
from wms.db import job, read_model
from wms.db.database import Transaction
from wms.errors import Rejected
from wms.ids import JobId, PilotId
from wms.jobdesc.array import expand
from wms.jobdesc.description import JobDescription
from wms.lease import holds
from wms.messages import queries as asked
from wms.messages import replies


async def show_lease(tx: Transaction, principal: Principal, query: asked.ShowLease) -> replies.HeldLease:
    """Return the input sandboxes of a job whose accepted lease the sending pilot holds under this epoch, or its payload.

    Raise Rejected (NOT_HELD) for another pilot's job, an older epoch, an offer, a job that does not exist, and for senders that are no
    pilots. The refusal is the same for all.
    """
    job_id = JobId(query.job_id)
    lease = found.lease if (found := (await job.read(tx, [job_id])).get(job_id)) else None
    pilot_id = PilotId(principal.pilot_id or "")
    is_held = holds(lease, pilot_id, query.epoch, await tx.now())
    if (
        principal.kind not in ("pilot", "payload")
        or lease is None
        or lease.phase != "accepted"
        or not is_held
    ):
        raise Rejected(
            "NOT_HELD",
            f"the pilot does not hold job {query.job_id} under epoch {query.epoch}",
            "files of a job are for the pilot with its lease alone",
        )
    index, parameters, body = await read_model.description(tx, job_id)
    own = expand(msgspec.json.decode(body, type=JobDescription), index or 0, parameters)
    return replies.HeldLease(
        query_id=query.query_id,
        client=query.client,
        job_id=query.job_id,
        epoch=query.epoch,
        inputs=tuple(each.sha256 for each in own.input_sandbox),
    )
