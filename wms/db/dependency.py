"""Dependencies in the database: which jobs are Held until which others have ended, a row for all that wait for the same ones."""

import re
from collections.abc import Iterable, Mapping, Sequence

import asyncpg
import msgspec

from wms.auth.policy import Scope
from wms.db.columns import dense
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import JobId
from wms.job.state import State
from wms.jobdesc.description import SandboxRef
from wms.jobdesc.predecessors import Predecessors, Ranges

SQL = load(__file__)

WINDOW = 1_000
"""Predecessors with rows that are looked at in one go."""
EVERYTHING = 2**63 - 1
_RANGE = re.compile(r"\[(-?[0-9]+),(-?[0-9]+)\)")


class Dependency(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs, and what they wait for."""

    dependency_id: int
    jobs: Ranges
    predecessors: Predecessors
    pending: Ranges
    """What is left of the predecessors behind the first that has not ended as it must."""
    failed: int | None = None
    """A predecessor that has ended otherwise, if the jobs were told of it."""


class PredecessorProgress(msgspec.Struct, frozen=True):
    """How far the predecessors have come."""

    pending: Ranges
    failed: int | None

    @property
    def is_met(self) -> bool:
        """Whether all have ended as they must."""
        return not self.pending


class Unmet(msgspec.Struct, frozen=True):
    """Predecessors of one block, or one with a row, that have not ended as they must: the first id, and the last."""

    job_id: int
    last: int
    state: State
    reason: str


async def insert(tx: Transaction, waiting: Iterable[tuple[Ranges, Predecessors]]) -> None:
    """Let jobs wait for others."""
    rows = [(jobs, each.all, each.any_end, each.outputs_of) for jobs, each in waiting]
    if rows:
        await tx.execute(SQL["insert"], *dense(tuple(map(_text, row)) for row in rows))


async def page(tx: Transaction, after: int, limit: int) -> list[Dependency]:
    """Return the next dependencies behind that number."""
    return [_dependency(row) for row in await tx.fetch(SQL["page"], after, limit)]


async def lock(tx: Transaction, dependency_id: int) -> Dependency | None:
    """Return a dependency, locked; None if it is gone or another has it locked."""
    row = await tx.fetchrow(SQL["lock"], dependency_id)
    return None if row is None else _dependency(row)


async def of_jobs(tx: Transaction, jobs: Ranges) -> list[Dependency]:
    """Return the dependencies of some of these jobs."""
    return [_dependency(row) for row in await tx.fetch(SQL["of_jobs"], _text(jobs))]


async def progress(tx: Transaction, asked: Sequence[tuple[Ranges, Ranges]]) -> list[PredecessorProgress]:
    """Return how far predecessors have come: of each pair those that are pending, and of which any end is enough."""
    if not asked:
        return []
    columns = dense((n, _text(pending), _text(any_end)) for n, (pending, any_end) in enumerate(asked))
    rows = {row["number"]: row for row in await tx.fetch(SQL["progress"], *columns, WINDOW)}
    return [_progress(pending, rows[n]) for n, (pending, _) in enumerate(asked)]


def _progress(pending: Ranges, row: asyncpg.Record) -> PredecessorProgress:
    unmet, looked_to = row["unmet"], row["looked_to"]
    # Behind what was looked at nothing is known.
    least = min(EVERYTHING if unmet is None else unmet, EVERYTHING if looked_to is None else looked_to + 1)
    left = tuple((max(low, least), high) for low, high in pending if high >= least)
    return PredecessorProgress(left, row["failed"])


async def unmet(tx: Transaction, pending: Ranges, any_end: Ranges, limit: int) -> list[Unmet]:
    """Return the first predecessors that have not ended as they must, those that never will as things stand before others."""
    rows = await tx.fetch(SQL["unmet"], _text(pending), _text(any_end), limit, WINDOW)
    return [Unmet(row["job_id"], row["last"], State(row["state"]), row["reason"]) for row in rows]


async def states(tx: Transaction, job_ids: Sequence[int]) -> dict[int, State]:
    """Return the states of jobs, of those that there are."""
    if not job_ids:
        return {}
    return {row["job_id"]: State(row["state"]) for row in await tx.fetch(SQL["states"], job_ids)}


async def advance(tx: Transaction, dependency_id: int, pending: Ranges, failed: int | None) -> None:
    """Remember what is left of the predecessors, and which of them the jobs were told of."""
    await tx.execute(SQL["advance"], dependency_id, _text(pending), failed)


async def delete(tx: Transaction, dependency_id: int) -> None:
    """Forget one: nobody waits any more."""
    await tx.execute(SQL["delete"], dependency_id)


async def let_go(tx: Transaction, jobs: Ranges) -> None:
    """Let these jobs wait for nobody any more."""
    await tx.execute(SQL["let_all_go"], _text(jobs))
    await tx.execute(SQL["let_go"], _text(jobs))


async def forget_idle(tx: Transaction, numbers: Sequence[int]) -> int:
    """Forget those of these dependencies of which no job is Held; return how many."""
    return await tx.execute(SQL["forget_idle"], numbers) if numbers else 0


async def lock_rows(
    tx: Transaction, jobs: Ranges, state: State, codes: Sequence[str] | None, limit: int
) -> list[JobId]:
    """Return some of these jobs that have rows and are in this state, held for one of these reasons, locked."""
    return [row["job_id"] for row in await tx.fetch(SQL["lock_rows"], _text(jobs), state, codes, limit)]


async def hold_codes(tx: Transaction, job_ids: Sequence[JobId]) -> dict[JobId, str]:
    """Return why these jobs are held, of those that are."""
    return {row["job_id"]: row["reason"] for row in await tx.fetch(SQL["hold_codes"], job_ids)}


async def visible(tx: Transaction, scope: Scope, ranges: Ranges) -> list[int]:
    """Return how many jobs of each range there are that the asker may see."""
    columns = dense(ranges, 2)
    rows = await tx.fetch(SQL["visible"], *columns, scope.owner, scope.group, scope.vo)
    found = {(row["low"], row["high"]): row["jobs"] for row in rows}
    return [found[each] for each in ranges]


async def bodies(tx: Transaction, jobs: Ranges) -> dict[int, str]:
    """Return the descriptions (JSON) of those of these jobs that are Held, by their ids."""
    return {row["description_id"]: row["body"] for row in await tx.fetch(SQL["bodies"], _text(jobs))}


async def rewrite_bodies(tx: Transaction, bodies: Mapping[int, str]) -> None:
    """Let descriptions say something else."""
    if bodies:
        await tx.execute(SQL["rewrite_bodies"], list(bodies), list(bodies.values()))


async def outputs(tx: Transaction, jobs: Ranges) -> tuple[SandboxRef, ...]:
    """Return the last outputs of these jobs, of those that have some, each into the directory of its job."""
    return tuple(
        SandboxRef(sha256=row["output_sha256"], size=row["output_bytes"] or 0, directory=str(row["job_id"]))
        for row in await tx.fetch(SQL["outputs"], _text(jobs))
    )


def _dependency(row: asyncpg.Record) -> Dependency:
    return Dependency(
        dependency_id=row["dependency_id"],
        jobs=_ranges(row["jobs"]),
        predecessors=Predecessors(
            *(_ranges(row[name]) for name in ("predecessors", "any_end", "outputs_of"))
        ),
        pending=_ranges(row["pending"]),
        failed=row["failed"],
    )


def _text(ranges: Ranges) -> str:
    """Return ids as a multirange's text."""
    return f"{{{','.join(f'[{low},{high}]' for low, high in ranges)}}}"


def _ranges(text: str) -> Ranges:
    return tuple((int(low), int(end) - 1) for low, end in _RANGE.findall(text))
