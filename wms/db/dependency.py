"""Dependencies in the database: jobs that are Held until other jobs, their predecessors, end.

Jobs with the same predecessors share one row.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

import asyncpg
import msgspec

from wms.auth.policy import Scope
from wms.db.array import multirange
from wms.db.columns import dense
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import JobId
from wms.job.state import State
from wms.jobdesc.description import SandboxRef
from wms.jobdesc.predecessors import Predecessors, Ranges

SQL = load(__file__)

WINDOW = 1_000
"""How many predecessors with job rows one statement reads at most."""
EVERYTHING = 2**63 - 1
"""An upper bound for job ids, higher than any."""
_RANGE = re.compile(r"\[(-?[0-9]+),(-?[0-9]+)\)")


class Dependency(msgspec.Struct, frozen=True, kw_only=True):
    """A set of jobs that all wait for the same predecessors."""

    dependency_id: int
    jobs: Ranges
    """The ids of the waiting jobs, as ranges."""
    predecessors: Predecessors
    pending: Ranges
    """The ids of the predecessors that must still be checked. All predecessors with lower ids have ended as required."""
    failed: int | None = None
    """The id of a predecessor that can no longer end as required, if the jobs' reason names it; else None."""


class PredecessorProgress(msgspec.Struct, frozen=True):
    """Which predecessors of waiting jobs are still pending, and the id of one that failed, if any."""

    pending: Ranges
    failed: int | None

    @property
    def is_met(self) -> bool:
        """Whether all predecessors have ended as required, so that the jobs may start."""
        return not self.pending


class Unmet(msgspec.Struct, frozen=True):
    """A range of predecessors that have not ended as required, all in the same state. A predecessor with a job row is a range by itself."""

    job_id: int
    """The first job id of the range of predecessors."""
    last: int
    """The last job id of the range of predecessors."""
    state: State
    reason: str


async def insert(tx: Transaction, waiting: Iterable[tuple[Ranges, Predecessors]]) -> None:
    """Store dependencies. Each pair gives the ids of waiting jobs, as ranges, and the predecessors that they wait for."""
    rows = [(jobs, each.all, each.any_end, each.outputs_of) for jobs, each in waiting]
    if rows:
        await tx.execute(SQL["insert"], *dense(tuple(map(multirange, row)) for row in rows))


async def page(tx: Transaction, after: int, limit: int) -> list[Dependency]:
    """Return up to `limit` dependencies with ids above `after`, in the order of their ids."""
    return [_dependency(row) for row in await tx.fetch(SQL["page"], after, limit)]


async def lock(tx: Transaction, dependency_id: int) -> Dependency | None:
    """Lock a dependency until the transaction ends, and return it; None if it was deleted or another transaction has locked it."""
    row = await tx.fetchrow(SQL["lock"], dependency_id)
    return None if row is None else _dependency(row)


async def of_jobs(tx: Transaction, jobs: Ranges) -> list[Dependency]:
    """Return the dependencies whose waiting jobs include any of these jobs."""
    return [_dependency(row) for row in await tx.fetch(SQL["of_jobs"], multirange(jobs))]


async def progress(tx: Transaction, asked: Sequence[tuple[Ranges, Ranges]]) -> list[PredecessorProgress]:
    """Return how far predecessors have ended, one result for each pair in `asked`, in order.

    A pair gives the ids of pending predecessors, and the ids of those for which any end is enough. Others must be Done.
    """
    if not asked:
        return []
    columns = dense(
        (n, multirange(pending), multirange(any_end)) for n, (pending, any_end) in enumerate(asked)
    )
    rows = {row["number"]: row for row in await tx.fetch(SQL["progress"], *columns, WINDOW)}
    return [_progress(pending, rows[n]) for n, (pending, _) in enumerate(asked)]


def _progress(pending: Ranges, row: asyncpg.Record) -> PredecessorProgress:
    unmet, looked_to = row["unmet"], row["looked_to"]
    # Nothing is known of the predecessors after those that were read.
    least = min(EVERYTHING if unmet is None else unmet, EVERYTHING if looked_to is None else looked_to + 1)
    left = tuple((max(low, least), high) for low, high in pending if high >= least)
    return PredecessorProgress(left, row["failed"])


async def unmet(tx: Transaction, pending: Ranges, any_end: Ranges, limit: int) -> list[Unmet]:
    """Return up to `limit` ranges of the `pending` predecessors that have not ended as required, those that have failed first.

    For ids in `any_end` any end is enough; others must be Done.
    """
    rows = await tx.fetch(SQL["unmet"], multirange(pending), multirange(any_end), limit, WINDOW)
    return [Unmet(row["job_id"], row["last"], State(row["state"]), row["reason"]) for row in rows]


async def states(tx: Transaction, job_ids: Sequence[int]) -> dict[int, State]:
    """Return the state of each of these jobs; jobs that do not exist are absent."""
    if not job_ids:
        return {}
    return {row["job_id"]: State(row["state"]) for row in await tx.fetch(SQL["states"], job_ids)}


async def advance(tx: Transaction, dependency_id: int, pending: Ranges, failed: int | None) -> None:
    """Store the progress of a dependency: the predecessors still pending, and the failed one that the jobs' reason names."""
    await tx.execute(SQL["advance"], dependency_id, multirange(pending), failed)


async def delete(tx: Transaction, dependency_id: int) -> None:
    """Delete a dependency that no job waits for any more. The jobs are not touched."""
    await tx.execute(SQL["delete"], dependency_id)


async def let_go(tx: Transaction, jobs: Ranges) -> None:
    """Remove these jobs from all dependencies, and delete dependencies that then have no jobs. The jobs' states are not changed."""
    await tx.execute(SQL["let_all_go"], multirange(jobs))
    await tx.execute(SQL["let_go"], multirange(jobs))


async def forget_idle(tx: Transaction, numbers: Sequence[int]) -> int:
    """Delete the dependencies with these ids that have no Held jobs left; return the number of deleted ones."""
    return await tx.execute(SQL["forget_idle"], numbers) if numbers else 0


async def lock_rows(
    tx: Transaction, jobs: Ranges, state: State, codes: Sequence[str] | None, limit: int
) -> list[JobId]:
    """Lock up to `limit` of these jobs that have job rows and this state, and return their ids.

    If `codes` is given, the reason code of the state must be one of them.
    """
    return [row["job_id"] for row in await tx.fetch(SQL["lock_rows"], multirange(jobs), state, codes, limit)]


async def hold_codes(tx: Transaction, job_ids: Sequence[JobId]) -> dict[JobId, str]:
    """Return the reason codes of those of these jobs that are Held and have job rows."""
    return {row["job_id"]: row["reason"] for row in await tx.fetch(SQL["hold_codes"], job_ids)}


async def visible(tx: Transaction, scope: Scope, ranges: Ranges) -> list[int]:
    """Return how many jobs of each of these ranges of ids exist and may be seen by the user with this scope."""
    columns = dense(ranges, 2)
    rows = await tx.fetch(SQL["visible"], *columns, scope.owner, scope.group, scope.vo)
    found = {(row["low"], row["high"]): row["jobs"] for row in rows}
    return [found[each] for each in ranges]


async def bodies(tx: Transaction, jobs: Ranges) -> dict[int, str]:
    """Return the job descriptions (JSON) of those of these jobs that are Held, by description id."""
    return {row["description_id"]: row["body"] for row in await tx.fetch(SQL["bodies"], multirange(jobs))}


async def rewrite_bodies(tx: Transaction, bodies: Mapping[int, str]) -> None:
    """Replace stored job descriptions. `bodies` maps description ids to the new texts (JSON)."""
    if bodies:
        await tx.execute(SQL["rewrite_bodies"], list(bodies), list(bodies.values()))


async def outputs(tx: Transaction, jobs: Ranges) -> tuple[SandboxRef, ...]:
    """Return references to the output sandboxes of these jobs, one for each job that has an output.

    Each names the job id as the directory into which the files are unpacked.
    """
    return tuple(
        SandboxRef(sha256=row["output_sha256"], size=row["output_bytes"] or 0, directory=str(row["job_id"]))
        for row in await tx.fetch(SQL["outputs"], multirange(jobs))
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


def _ranges(text: str) -> Ranges:
    return tuple((int(low), int(end) - 1) for low, end in _RANGE.findall(text))
