"""Transfers of files by URL in the database: how fast they were, and how far those of open attempts are."""

from collections.abc import Sequence

import msgspec

from wms.db.columns import dense
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import JobId, PilotId, SiteName
from wms.messages.reports import HostTransfer, StagingReport

SQL = load(__file__)


class MeasuredWay(msgspec.Struct, frozen=True):
    """What an attempt measured of the way between its site and a storage host."""

    site: SiteName
    transfer: HostTransfer


async def keep(tx: Transaction, measured: Sequence[MeasuredWay]) -> None:
    """Store what was measured; transfers of no bytes or no time tell nothing and are left out."""
    if measured:
        rows = (
            (each.site, each.transfer.host, each.transfer.part, each.transfer.size, each.transfer.seconds)
            for each in measured
        )
        await tx.execute(SQL["keep"], *dense(rows))


async def note(tx: Transaction, said: Sequence[tuple[PilotId, StagingReport]]) -> None:
    """Store how far transfers are, if the pilot that says so holds the job."""
    if said:
        rows = ((each.job_id, each.epoch, pilot, msgspec.json.encode(each).decode()) for pilot, each in said)
        await tx.execute(SQL["note"], *dense(rows))


async def progress(tx: Transaction, job_id: JobId) -> StagingReport | None:
    """Return how far the transfers of a job are, as its pilot said last; None if none runs."""
    said = await tx.fetchval(SQL["progress"], job_id)
    return None if said is None else msgspec.json.decode(said, type=StagingReport)


async def forget(tx: Transaction, age: float, limit: int) -> int:
    """Delete up to `limit` measurements that are older than `age` seconds; return the number of deleted ones."""
    return await tx.execute(SQL["forget"], age, limit)
