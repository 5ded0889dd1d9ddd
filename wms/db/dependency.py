"""Dependencies in the database: jobs that are Held until their predecessors end. Jobs with the same predecessors share one row."""

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
"""The most predecessors with job rows that one statement reads."""
EVERYTHING = 2**63 - 1
"""An upper bound above every job id."""
_RANGE = re.compile(r"\[(-?[0-9]+),(-?[0-9]+)\)")


class Dependency(msgspec.Struct, frozen=True, kw_only=True):
    """A set of jobs that wait for the same predecessors."""

    dependency_id: int
    jobs: Ranges
    """The ids of the waiting jobs, as ranges."""
    predecessors: Predecessors
    pending: Ranges
    """The ids of the predecessors from the first one on that has not yet ended as required."""
    failed: int | None = None
    """A predecessor that can no longer end as required, if the reason of the jobs states it."""


class PredecessorProgress(msgspec.Struct, frozen=True):
    """The predecessors still pending, and one that failed if there is any."""

    pending: Ranges
    failed: int | None

    @property
    def is_met(self) -> bool:
        """Whether all predecessors have ended as required."""
        return not self.pending


class Unmet(msgspec.Struct, frozen=True):
    """A range of predecessors that have not ended as required: a part of one block, or one job with a row."""

    job_id: int
    """The first id of the range."""
    last: int
    """The last id of the range."""
    state: State
    reason: str


async def insert(tx: Transaction, waiting: Iterable[tuple[Ranges, Predecessors]]) -> None:
    """Store dependencies: pairs of waiting jobs and their predecessors."""
    rows = [(jobs, each.all, each.any_end, each.outputs_of) for jobs, each in waiting]
    if rows:
        await tx.execute(SQL["insert"], *dense(tuple(map(_text, row)) for row in rows))


async def page(tx: Transaction, after: int, limit: int) -> list[Dependency]:
    """Return up to `limit` dependencies with ids above `after`, in the order of their ids."""
    return [_dependency(row) for row in await tx.fetch(SQL["page"], after, limit)]


async def lock(tx: Transaction, dependency_id: int) -> Dependency | None:
    """Return a dependency and lock it; None if it was deleted or another transaction has it locked."""
    row = await tx.fetchrow(SQL["lock"], dependency_id)
    return None if row is None else _dependency(row)


async def of_jobs(tx: Transaction, jobs: Ranges) -> list[Dependency]:
    """Return the dependencies that contain any of these jobs."""
    return [_dependency(row) for row in await tx.fetch(SQL["of_jobs"], _text(jobs))]


async def progress(tx: Transaction, asked: Sequence[tuple[Ranges, Ranges]]) -> list[PredecessorProgress]:
    """Return the progress for each pair: the pending predecessors, and the predecessors for which any end is enough."""
    if not asked:
        return []
    columns = dense((n, _text(pending), _text(any_end)) for n, (pending, any_end) in enumerate(asked))
    rows = {row["number"]: row for row in await tx.fetch(SQL["progress"], *columns, WINDOW)}
    return [_progress(pending, rows[n]) for n, (pending, _) in enumerate(asked)]


def _progress(pending: Ranges, row: asyncpg.Record) -> PredecessorProgress:
    unmet, looked_to = row["unmet"], row["looked_to"]
    # Nothing is known of the predecessors after those that were read.
    least = min(EVERYTHING if unmet is None else unmet, EVERYTHING if looked_to is None else looked_to + 1)
    left = tuple((max(low, least), high) for low, high in pending if high >= least)
    return PredecessorProgress(left, row["failed"])


async def unmet(tx: Transaction, pending: Ranges, any_end: Ranges, limit: int) -> list[Unmet]:
    """Return up to `limit` predecessors that have not ended as required; those that can no longer do so come first."""
    rows = await tx.fetch(SQL["unmet"], _text(pending), _text(any_end), limit, WINDOW)
    return [Unmet(row["job_id"], row["last"], State(row["state"]), row["reason"]) for row in rows]


async def states(tx: Transaction, job_ids: Sequence[int]) -> dict[int, State]:
    """Return the state of each of these jobs; jobs that do not exist are absent."""
    if not job_ids:
        return {}
    return {row["job_id"]: State(row["state"]) for row in await tx.fetch(SQL["states"], job_ids)}


async def advance(tx: Transaction, dependency_id: int, pending: Ranges, failed: int | None) -> None:
    """Store the pending predecessors of a dependency, and the failed one that the reason of the jobs states."""
    await tx.execute(SQL["advance"], dependency_id, _text(pending), failed)


async def delete(tx: Transaction, dependency_id: int) -> None:
    """Delete a dependency that no job waits for any more."""
    await tx.execute(SQL["delete"], dependency_id)


async def let_go(tx: Transaction, jobs: Ranges) -> None:
    """Remove these jobs from all dependencies; delete dependencies that have no jobs left."""
    await tx.execute(SQL["let_all_go"], _text(jobs))
    await tx.execute(SQL["let_go"], _text(jobs))


async def forget_idle(tx: Transaction, numbers: Sequence[int]) -> int:
    """Delete the dependencies with these numbers that have no Held jobs; return the number of deleted ones."""
    return await tx.execute(SQL["forget_idle"], numbers) if numbers else 0


async def lock_rows(
    tx: Transaction, jobs: Ranges, state: State, codes: Sequence[str] | None, limit: int
) -> list[JobId]:
    """Lock and return up to `limit` of these jobs that have rows and this state. If `codes` are given, the reason must be one of them."""
    return [row["job_id"] for row in await tx.fetch(SQL["lock_rows"], _text(jobs), state, codes, limit)]


async def hold_codes(tx: Transaction, job_ids: Sequence[JobId]) -> dict[JobId, str]:
    """Return the reason codes of these jobs as far as they have rows and are Held."""
    return {row["job_id"]: row["reason"] for row in await tx.fetch(SQL["hold_codes"], job_ids)}


async def visible(tx: Transaction, scope: Scope, ranges: Ranges) -> list[int]:
    """Return, for each range of ids, the number of jobs that the user may see."""
    columns = dense(ranges, 2)
    rows = await tx.fetch(SQL["visible"], *columns, scope.owner, scope.group, scope.vo)
    found = {(row["low"], row["high"]): row["jobs"] for row in rows}
    return [found[each] for each in ranges]


async def bodies(tx: Transaction, jobs: Ranges) -> dict[int, str]:
    """Return the descriptions (JSON) of these jobs as far as they are Held, by description id."""
    return {row["description_id"]: row["body"] for row in await tx.fetch(SQL["bodies"], _text(jobs))}


async def rewrite_bodies(tx: Transaction, bodies: Mapping[int, str]) -> None:
    """Replace the texts (JSON) of descriptions, by description id."""
    if bodies:
        await tx.execute(SQL["rewrite_bodies"], list(bodies), list(bodies.values()))


async def outputs(tx: Transaction, jobs: Ranges) -> tuple[SandboxRef, ...]:
    """Return the last output of each of these jobs that has one. Its directory is named after the job's id."""
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
    """Return ranges of ids as the text of a Postgres multirange."""
    return f"{{{','.join(f'[{low},{high}]' for low, high in ranges)}}}"


def _ranges(text: str) -> Ranges:
    return tuple((int(low), int(end) - 1) for low, end in _RANGE.findall(text))
