"""Job arrays (sweeps) in the database: one row for all jobs of an array; the lists of their parameters are stored beside it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import accumulate

import asyncpg
import msgspec

from wms.auth.policy import Scope
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import CommandId, Identity, JobId, TaskQueueId
from wms.job.state import State
from wms.jobdesc.array import CHUNK, in_chunks

SQL = load(__file__)

Own = dict[str, str]
"""One job's values of its array's parameters, by parameter name."""


class NewSweep(msgspec.Struct, frozen=True, kw_only=True):
    """A job array (sweep) that is to be inserted."""

    first: JobId
    """The lowest job id of the array; the others follow without gaps."""
    count: int
    """How many jobs the array has."""
    description_id: int
    tq_id: TaskQueueId
    name: str
    user_priority: float
    max_attempts: int
    parameters: Mapping[str, Sequence[str]]
    """For each parameter name, the values of the jobs in order. The lists are empty if `kept` has their values."""
    kept: tuple[tuple[int, int], ...] = ()
    """Parts of long lists that `keep` stored, in order: the number of each part, and for how many jobs it has values."""
    job_group: str = ""


async def insert(tx: Transaction, identity: Identity, sweeps: Sequence[NewSweep]) -> None:
    """Insert job arrays of one owner, all of whose jobs wait. The cost does not depend on the number of jobs."""
    if not sweeps:
        return
    await tx.execute(
        SQL["insert"],
        [each.first for each in sweeps],
        [each.first + each.count - 1 for each in sweeps],
        [each.description_id for each in sweeps],
        [each.tq_id for each in sweeps],
        [each.name for each in sweeps],
        [each.user_priority for each in sweeps],
        [each.max_attempts for each in sweeps],
        [msgspec.json.encode(list(each.parameters)).decode() for each in sweeps],
        *identity,
        [each.job_group for each in sweeps],
    )
    await _insert_parameters(
        tx,
        [
            (each.description_id, chunked(each.parameters, each.count))
            for each in sweeps
            if each.parameters and not each.kept
        ],
    )
    for each in sweeps:
        if each.kept:
            await _adopt(tx, each)


async def _insert_parameters(tx: Transaction, lists: Sequence[tuple[int, Sequence[str]]]) -> None:
    """Insert the texts that hold parameter lists of descriptions, in order."""
    rows = [
        (description_id, number, chunk)
        for description_id, chunks in lists
        for number, chunk in enumerate(chunks)
    ]
    if rows:
        await tx.execute(SQL["insert_parameters"], *map(list, zip(*rows, strict=True)))


async def keep(tx: Transaction, owner: str, command_id: CommandId, chunks: Sequence[str], size: int) -> int:
    """Store a part of long parameter lists for a job array that is submitted later; return the number of the part.

    `chunks` are texts as `chunked` makes them, `size` is their size in bytes, and `command_id` names the command that brought them.
    """
    kept: int = await tx.fetchval(SQL["keep"])
    await _insert_parameters(tx, [(kept, chunks)])
    await tx.execute(SQL["note_part"], kept, owner, command_id, size)
    return kept


async def unused_of(tx: Transaction, owner: str) -> tuple[int, int]:
    """Return the number and the total bytes of the owner's stored list parts that no job array uses yet."""
    row = await tx.fetchrow(SQL["unused_of"], owner)
    assert row is not None
    return row["parts"], row["bytes"]


async def unused(tx: Transaction, kept: Sequence[int]) -> set[int]:
    """Lock these parts of lists, by number, and return those that no job array uses yet."""
    return {row["description_id"] for row in await tx.fetch(SQL["unused"], kept)}


async def _adopt(tx: Transaction, sweep: NewSweep) -> None:
    parts = [kept for kept, _ in sweep.kept]
    starts = accumulate((count for _, count in sweep.kept[:-1]), initial=0)
    await tx.execute(SQL["adopt"], sweep.description_id, parts, [start // CHUNK for start in starts])
    await tx.execute(SQL["forget"], parts)


def chunked(lists: Mapping[str, Sequence[str]], count: int) -> list[str]:
    """Return the parameter lists of `count` jobs as texts for the database, one for each thousand jobs. Equal lists give equal texts."""
    return [_encoder.encode(chunk).decode() for chunk in in_chunks(lists, count)]


_encoder = msgspec.json.Encoder(order="deterministic")
_lists = msgspec.json.Decoder(dict[str, list[str]])


async def parameters(tx: Transaction, description_id: int, first: int, last: int) -> list[Own]:
    """Return the parameter values of the jobs with index `first` to `last`, both included, in order.

    `description_id` names the array's description, which must have lists.
    """
    rows = await tx.fetch(SQL["parameters"], description_id, first // CHUNK, last // CHUNK)
    found: list[Own] = []
    for row in rows:
        lists = _lists.decode(row["columns"])
        found += [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]
    start = first // CHUNK * CHUNK
    return found[first - start : last - start + 1]


async def select(
    tx: Transaction,
    scope: Scope,
    *,
    owner: str | None,
    states: Sequence[State],
    after: int | None,
    newest: bool,
    limit: int,
    job_group: str | None = None,
    changed_since: datetime | None = None,
) -> list[asyncpg.Record]:
    """Return rows of up to `limit` job arrays that the user with this scope may see and that meet all conditions. None sets no condition.

    An array is returned if any of its jobs is in one of `states`; empty: any state. Arrays come in ascending order of ids, or descending
    with `newest`, from the one after the id `after` on.
    """
    whose = (scope.owner, scope.group, scope.vo, owner)
    return await tx.fetch(
        SQL["select"], *whose, list(states) or None, after, newest, limit, job_group, changed_since
    )


async def count(tx: Transaction, firsts: Sequence[int]) -> dict[int, dict[str, int]]:
    """Return how many jobs of each of these arrays are in each state. An array is named by its first job id."""
    counts: dict[int, dict[str, int]] = {first: {} for first in firsts}
    for row in await tx.fetch(SQL["count"], firsts):
        counts[row["first"]][row["state"]] = row["jobs"]
    return counts
