"""Forgetting: what ended long ago goes, in small batches, and the tables of history as a whole once they are empty.

A job goes with its history, its attempts and its description at once, so that what is left is always whole. Ids rise with
time: whoever looks for old jobs begins at the lowest and stops at the first that is too young, and needs no index for it.
"""

import msgspec

from wms.db.database import Transaction
from wms.db.sql import load
from wms.job.state import ENDED

SQL = load(__file__)

_ENDED = sorted(ENDED)


class Ages(msgspec.Struct, frozen=True, kw_only=True):
    """For how many seconds jobs are kept: after their end, after their owner removed them."""

    ended: float
    deleted: float


class RetentionRound(msgspec.Struct, frozen=True, kw_only=True):
    """How far one look went, and what it forgot."""

    last: int | None
    """The id to go on from; None at the end of what is old enough."""
    forgotten: int


async def make_partitions(tx: Transaction, ahead: int) -> int:
    """Make room for the history of ids to come; return how many tables that took."""
    return int(await tx.fetchval(SQL["make_partitions"], ahead))


async def drop_partitions(tx: Transaction) -> int:
    """Drop the tables of history in which nothing is left; return how many."""
    return int(await tx.fetchval(SQL["drop_partitions"]))


async def forget_submissions(tx: Transaction, age: float, limit: int) -> int:
    """Forget which commands were taken so long ago; return how many. One that comes again is then taken again."""
    found = await tx.execute(SQL["submissions"], age, limit)
    if found:
        await mark(tx, "submission", age)
    return found


async def forget_parts(tx: Transaction, age: float, limit: int) -> int:
    """Forget parts of long lists that no submission has used for so long, and the commands that brought them."""
    return int(await tx.fetchval(SQL["parts"], age, limit))


async def mark(tx: Transaction, what: str, age: float) -> None:
    """Remember that what is older was forgotten on purpose, lest it be missed."""
    await tx.execute(SQL["mark"], what, age)


async def forget_jobs(tx: Transaction, after: int, limit: int, ages: Ages) -> RetentionRound:
    """Look at the next jobs with rows of their own behind an id, and forget those that ended long ago."""
    row = await tx.fetchrow(SQL["look"], after, limit, ages.ended, ages.deleted, _ENDED)
    assert row is not None
    gone = await tx.fetchval(SQL["forget_jobs"], row["over"], _ENDED) if row["over"] else 0
    return RetentionRound(
        last=None if row["young"] or row["looked_at"] < limit else row["last"], forgotten=gone
    )


async def begin_forgetting_sweeps(tx: Transaction, after: int, limit: int, ages: Ages) -> RetentionRound:
    """Look at the next sweeps behind that id; those of which every job ended long ago are no more, but for their rows."""
    row = await tx.fetchrow(SQL["look_at_sweeps"], after, limit, ages.ended, ages.deleted, _ENDED)
    assert row is not None
    gone = 0
    if row["over"]:
        await tx.execute(SQL["lock_sweeps"], row["over"])
        gone = await tx.execute(SQL["begin_forgetting"], row["over"])
    return RetentionRound(last=row["last"], forgotten=gone)


async def forget_rows(tx: Transaction, limit: int) -> int:
    """Forget some jobs of a sweep that is no more; return how many, 0 when there is nothing to do."""
    row = await tx.fetchrow(SQL["forgetting"])
    if row is None:
        return 0
    gone = int(await tx.fetchval(SQL["forget_rows"], row["first"], row["last"], _ENDED, limit))
    ended = await tx.fetchval(SQL["end_forgetting"], row["first"]) if gone < limit else 0
    return gone + int(ended)


async def forget_offsets(tx: Transaction, age: float) -> int:
    """Forget the offsets of clusters that were left for others so long ago."""
    return await tx.execute(SQL["offsets"], age)
