"""Sweeps in the database: one row for all the jobs of a description, with the lists of parameters beside it."""

from collections.abc import Mapping, Sequence

import asyncpg
import msgspec

from wms.auth.policy import Scope
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import JobId, TaskQueueId
from wms.job.state import State

SQL = load(__file__)

CHUNK = 1_000
"""Jobs whose parameters are one row."""

Own = dict[str, str]
"""The values of one job."""


class Born(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep to be inserted."""

    first: JobId
    count: int
    description_id: int
    tq_id: TaskQueueId
    name: str
    user_priority: float
    max_attempts: int
    parameters: Mapping[str, Sequence[str]]
    """Lists with one value a job."""


async def insert(tx: Transaction, owner: tuple[str, str, str], sweeps: Sequence[Born]) -> None:
    """Insert sweeps of (owner, group, VO), all of their jobs Waiting; the cost does not depend on how many these are."""
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
        *owner,
    )
    chunks = [
        (each.description_id, start // CHUNK, _columns(each.parameters, start))
        for each in sweeps
        if each.parameters
        for start in range(0, each.count, CHUNK)
    ]
    if chunks:
        await tx.execute(SQL["insert_parameters"], *map(list, zip(*chunks, strict=True)))


def _columns(lists: Mapping[str, Sequence[str]], start: int) -> str:
    return msgspec.json.encode(
        {name: values[start : start + CHUNK] for name, values in lists.items()}
    ).decode()


_lists = msgspec.json.Decoder(dict[str, list[str]])


async def parameters(tx: Transaction, description_id: int, first: int, last: int) -> list[Own]:
    """Return the values of the jobs number `first` to `last` of a description that has lists."""
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
) -> list[asyncpg.Record]:
    """Return a page of sweeps, those with a job in one of the states."""
    whose = (scope.owner, scope.group, scope.vo, owner)
    return await tx.fetch(SQL["select"], *whose, list(states) or None, after, newest, limit)


async def count(tx: Transaction, firsts: Sequence[int]) -> dict[int, dict[str, int]]:
    """Return how many of the jobs of sweeps are in each state, by the sweep's first job."""
    counts: dict[int, dict[str, int]] = {first: {} for first in firsts}
    for row in await tx.fetch(SQL["count"], firsts):
        counts[row["first"]][row["state"]] = row["jobs"]
    return counts
