"""Retention: old jobs and commands are deleted from the database in small batches, and tables of history once they are empty.

A job is deleted together with its history, attempts and description, so that remaining jobs are complete. Ids rise with time. So a search
for old jobs begins at the lowest id and stops at the first job that is too young. It needs no index.
"""

import msgspec

from wms.db.database import Transaction
from wms.db.sql import load
from wms.job.state import ENDED

SQL = load(__file__)

_ENDED = sorted(ENDED)


class Ages(msgspec.Struct, frozen=True, kw_only=True):
    """For how many seconds jobs are kept after their end, and after their owner deleted them."""

    ended: float
    deleted: float


class RetentionRound(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one round: where the next one continues, and how many jobs or job arrays were deleted."""

    last: int | None
    """The id from which the next round continues; None if all jobs that are old enough were examined."""
    forgotten: int


async def make_partitions(tx: Transaction, ahead: int) -> int:
    """Create the history tables that the next job ids will need, `ahead` of the present ids. Return how many were created."""
    return int(await tx.fetchval(SQL["make_partitions"], ahead))


async def drop_partitions(tx: Transaction) -> int:
    """Drop history tables that are empty and not used any more; return how many were dropped."""
    return int(await tx.fetchval(SQL["drop_partitions"]))


async def forget_submissions(tx: Transaction, age: float, limit: int) -> int:
    """Delete up to `limit` commands of users that were executed more than `age` seconds ago; return how many.

    A command that is repeated after its deletion is executed again.
    """
    found = await tx.execute(SQL["submissions"], age, limit)
    if found:
        await mark(tx, "submission", age)
    return found


async def forget_parts(tx: Transaction, age: float, limit: int) -> int:
    """Delete parts of long parameter lists that no submission used for `age` seconds, and the commands that brought them.

    Return the number of deleted parts, at most `limit`.
    """
    return int(await tx.fetchval(SQL["parts"], age, limit))


async def mark(tx: Transaction, what: str, age: float) -> None:
    """Store that rows of kind `what` older than `age` seconds were deleted on purpose, so that no audit misses them."""
    await tx.execute(SQL["mark"], what, age)


async def forget_jobs(tx: Transaction, after: int, limit: int, ages: Ages) -> RetentionRound:
    """Examine the next `limit` jobs with job rows and ids above `after`; delete those older than `ages` allow."""
    row = await tx.fetchrow(SQL["look"], after, limit, ages.ended, ages.deleted, _ENDED)
    assert row is not None
    gone = await tx.fetchval(SQL["forget_jobs"], row["over"], _ENDED) if row["over"] else 0
    return RetentionRound(
        last=None if row["young"] or row["looked_at"] < limit else row["last"], forgotten=gone
    )


async def begin_forgetting_sweeps(tx: Transaction, after: int, limit: int, ages: Ages) -> RetentionRound:
    """Examine the next `limit` job arrays (sweeps) after the id `after`; delete those whose jobs all ended long ago.

    The rows of their jobs remain until `forget_rows` deletes them.
    """
    row = await tx.fetchrow(SQL["look_at_sweeps"], after, limit, ages.ended, ages.deleted, _ENDED)
    assert row is not None
    gone = 0
    if row["over"]:
        await tx.execute(SQL["lock_sweeps"], row["over"])
        gone = await tx.execute(SQL["begin_forgetting"], row["over"])
    return RetentionRound(last=row["last"], forgotten=gone)


async def forget_rows(tx: Transaction, limit: int) -> int:
    """Delete up to `limit` job rows of the oldest deleted job array; return how many, 0 if nothing is left.

    With its last rows the array's description is deleted too, and counts as one.
    """
    row = await tx.fetchrow(SQL["forgetting"])
    if row is None:
        return 0
    gone = int(await tx.fetchval(SQL["forget_rows"], row["first"], row["last"], _ENDED, limit))
    ended = await tx.fetchval(SQL["end_forgetting"], row["first"]) if gone < limit else 0
    return gone + int(ended)


async def forget_offsets(tx: Transaction, age: float) -> int:
    """Delete consumers' offsets in Kafka clusters that were left for another more than `age` seconds ago; return how many."""
    return await tx.execute(SQL["offsets"], age)
