"""Transfers of jobs' files by URL in the database: how fast past ones were, and how far those of running jobs are."""

from collections.abc import Sequence

import msgspec

from wms.db.columns import dense
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import JobId, PilotId, SiteName
from wms.messages.reports import HostTransfer, StagingReport

SQL = load(__file__)


class MeasuredWay(msgspec.Struct, frozen=True):
    """The speed of file transfers between a site and a storage host, as measured by one attempt of a job."""

    site: SiteName
    transfer: HostTransfer


async def keep(tx: Transaction, measured: Sequence[MeasuredWay]) -> None:
    """Store measured transfers. Those of no bytes or no time are left out."""
    if measured:
        rows = (
            (each.site, each.transfer.host, each.transfer.part, each.transfer.size, each.transfer.seconds)
            for each in measured
        )
        await tx.execute(SQL["keep"], *dense(rows))


async def note(tx: Transaction, said: Sequence[tuple[PilotId, StagingReport]]) -> None:
    """Store the progress of jobs' file transfers, as pilots report it. A report of a pilot that does not hold the job is ignored."""
    if said:
        rows = ((each.job_id, each.epoch, pilot, msgspec.json.encode(each).decode()) for pilot, each in said)
        await tx.execute(SQL["note"], *dense(rows))


async def progress(tx: Transaction, job_id: JobId) -> StagingReport | None:
    """Return the progress of a job's file transfers, as its pilot last reported it; None if no transfer is under way."""
    said = await tx.fetchval(SQL["progress"], job_id)
    return None if said is None else msgspec.json.decode(said, type=StagingReport)


async def forget(tx: Transaction, age: float, limit: int) -> int:
    """Delete up to `limit` measured transfers that are older than `age` seconds; return the number of deleted ones."""
    return await tx.execute(SQL["forget"], age, limit)
