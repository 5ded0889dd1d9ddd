"""Jobs that start after other jobs (predecessors): they are held from their submission until these have ended.

No event triggers a dependency. Instead a loop looks at all of them every second, at committed states. So none is missed after a
crash, and no pilot's report waits for the jobs of others.
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter

import msgspec
import structlog

from wms.auth.policy import Action, Scope, no_such_job, scope
from wms.auth.principal import Principal
from wms.db import block, dependency, job, share
from wms.db.block import JobFilter
from wms.db.database import GONE, RETRIED, Database, Transaction
from wms.db.dependency import Dependency, PredecessorProgress
from wms.db.job import JobMove
from wms.errors import Rejected
from wms.ids import beyond, joined
from wms.job.dependency import WAITS, failed, held, released, waits
from wms.job.job import Steps
from wms.job.reasons import Code, Reason
from wms.job.state import State
from wms.jobdesc.description import JobDescription
from wms.jobdesc.predecessors import Predecessors, Ranges, count, in_words

log = structlog.get_logger()

PAGE = 500
BATCH = 1_000
"""The most jobs with rows of their own that are released, or get a new reason, in one transaction."""
BORN_LIMIT = 1_000_000
"""The most new jobs with rows of their own that are held for their predecessors in the transaction of their submission."""
LOOK_SECONDS = 2.0
"""The time limit, in seconds, of one round over the dependencies. The next round continues where it stopped."""
JOBS_LIMIT, RANGES_LIMIT = 2_000_000, 20_000
"""The most predecessors that the jobs of one submission may name together, and the most ranges of ids in which they are named."""
REST = 5
"""The pause after a pass over all dependencies, as a multiple of the pass's duration."""
SET_ASIDE_SECONDS = 60.0
NEVER_DONE = frozenset({State.KILLED, State.DELETED})
_SOURCE = "job_manager"
_EVERYBODY = Scope(reach="all")

_decoder = msgspec.json.Decoder(JobDescription)
_encoder = msgspec.json.Encoder()

Waiting = Mapping[Predecessors, Ranges]
"""Ranges of job ids, by the predecessors for which these jobs wait."""


# --- taking -------------------------------------------------------------------------------------------------------


async def check(tx: Transaction, principal: Principal, wanted: Iterable[Predecessors]) -> None:
    """Raise Rejected for predecessors that do not exist, can never be Done, or that `principal` may not see.

    `wanted` are the predecessors of each job. If a job takes the outputs of a predecessor, `principal` must be allowed to read these as well.
    """
    distinct = set(wanted)
    if not distinct:
        return
    _check_size(distinct)
    principal = await share.acting(tx, principal)
    await _check_visible(tx, principal, "see", joined(r for each in distinct for r in each.all))
    await _check_visible(
        tx, principal, "fetch_output", joined(r for each in distinct for r in each.outputs_of)
    )
    strict = joined(r for each in distinct for r in beyond(each.all, each.any_end))
    for each in await dependency.unmet(tx, strict, (), dependency.WINDOW):
        if each.state in NEVER_DONE:
            raise Rejected(
                "NEVER_DONE",
                f"job {each.job_id} is {each.state}, and nothing can start after it",
                "leave it out, or name it with --after-any",
            )


def _check_size(distinct: Iterable[Predecessors]) -> None:
    jobs = sum(count(each.all) for each in distinct)
    ranges = sum(len(each.all) for each in distinct)
    if jobs > JOBS_LIMIT or ranges > RANGES_LIMIT:
        raise Rejected(
            "TOO_MANY_PREDECESSORS",
            f"the jobs name {jobs:,} predecessors in {ranges:,} ranges, more than {JOBS_LIMIT:,} or {RANGES_LIMIT:,}",
            "submit them in several parts",
        )


async def _check_visible(tx: Transaction, principal: Principal, action: Action, ranges: Ranges) -> None:
    for (low, high), seen in zip(
        ranges, await dependency.visible(tx, scope(principal, action), ranges), strict=True
    ):
        if seen == high - low + 1:
            continue
        if low == high:
            raise no_such_job(low)
        raise Rejected(
            "NO_SUCH_JOB",
            f"of the jobs {low}-{high}, which others are to start after, only {seen:,} are there",
            "`wms jobs` lists yours",
        )


async def take(tx: Transaction, waiting: Waiting, *, is_held: bool) -> None:
    """Hold new jobs of this transaction until their predecessors have ended. Jobs whose predecessors have all ended are not held.

    With `is_held` the user holds them anyway; then only the dependency is stored.
    """
    made = [
        Dependency(dependency_id=0, jobs=jobs, predecessors=each, pending=each.all)
        for each, jobs in waiting.items()
    ]
    told = zip(made, await _progress(tx, made), strict=True)
    unmet = [(each, now) for each, now in told if not now.is_met or each.predecessors.outputs_of]
    await dependency.insert(tx, ((each.jobs, each.predecessors) for each, _ in unmet))
    if unmet and not is_held:
        reasons = await _reasons(tx, [(each, now.failed) for each, now in unmet])
        moving = [
            (each.jobs, held(State.WAITING, why)) for (each, _), why in zip(unmet, reasons, strict=True)
        ]
        await _move(tx, moving, State.WAITING, None, BORN_LIMIT)


async def _progress(tx: Transaction, asked: Iterable[Dependency]) -> list[PredecessorProgress]:
    return await dependency.progress(tx, [(each.pending, each.predecessors.any_end) for each in asked])


async def reasons_of(tx: Transaction, asked: Sequence[Dependency]) -> list[Reason]:
    """Return for each dependency in `asked`, in the same order, why the jobs that wait for it are Held now.

    Either some predecessors have not ended, or one ended in another state than required.
    """
    told = zip(asked, await _progress(tx, asked), strict=True)
    return await _reasons(tx, [(each, now.failed) for each, now in told])


async def _reasons(tx: Transaction, told: Sequence[tuple[Dependency, int | None]]) -> list[Reason]:
    """Return, for each dependency, the reason for which its jobs are held. Each dependency comes with the id of its failed predecessor, or None."""
    states = await dependency.states(tx, [each for _, each in told if each is not None])
    words = [in_words(each.predecessors.all) for each, _ in told]
    return [
        waits(named) if each is None else failed(each, states[each], named)
        for named, (_, each) in zip(words, told, strict=True)
    ]


# --- looking ------------------------------------------------------------------------------------------------------


class Dependencies:
    """A loop that looks at all dependencies, in pages. Several processes may run it. `monotonic` returns monotonic seconds."""

    def __init__(self, db: Database, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._db = db
        self._monotonic = monotonic
        self._after = self._idle_after = 0
        self._not_before = self._took = 0.0
        self._set_aside: dict[int, float] = {}
        """Dependencies that could not be settled because of a fault, by id, with the time of the next try in monotonic seconds."""

    async def look(self) -> bool:
        """Look at the next page of dependencies, and release jobs or change their reason. Return whether there may be more to do."""
        began = self._monotonic()
        if began < self._not_before:
            return False
        more = await self._look()
        self._took += self._monotonic() - began
        if not more:
            self._not_before, self._took = self._monotonic() + REST * self._took, 0.0
        return more

    async def _look(self) -> bool:
        async with self._db.transaction() as tx:
            page = await dependency.page(tx, self._after, PAGE)
            told = await _progress(tx, page)
        began = self._monotonic()
        for each, now in zip(page, told, strict=True):
            self._after = each.dependency_id
            if now.is_met or (now.pending, now.failed) != (each.pending, each.failed):
                await self._settle_or_set_aside(each.dependency_id)
            if self._monotonic() - began > LOOK_SECONDS:
                return True
        if len(page) < PAGE:
            self._after = 0
        return len(page) == PAGE

    async def _settle_or_set_aside(self, number: int) -> None:
        """Settle one dependency. If that fails, log it, so that no other dependency is delayed."""
        if self._set_aside.get(number, 0.0) > self._monotonic():
            return
        try:
            async with self._db.transaction() as tx:
                await settle(tx, number)
        except (*GONE, *RETRIED):
            raise
        except Exception:
            log.exception(
                "a dependency could not be settled, and is set aside for a while", dependency=number
            )
            self._set_aside[number] = self._monotonic() + SET_ASIDE_SECONDS

    async def forget_idle(self) -> bool:
        """Delete those dependencies of the next page whose jobs were killed or removed. Return whether there may be more."""
        now = self._monotonic()
        self._set_aside = {number: until for number, until in self._set_aside.items() if until > now}
        async with self._db.transaction() as tx:
            numbers = [each.dependency_id for each in await dependency.page(tx, self._idle_after, PAGE)]
            await dependency.forget_idle(tx, numbers)
        is_last = len(numbers) < PAGE
        self._idle_after = 0 if is_last else numbers[-1]
        return not is_last


async def settle(tx: Transaction, number: int) -> None:
    """Release the jobs of one dependency if its predecessors have ended, else update the reason for which they are held.

    `number` is the id of the dependency, whose row is locked here. If it no longer exists, nothing happens.
    """
    found = await dependency.lock(tx, number)
    if found is None:
        return
    (now,) = await _progress(tx, [found])
    if now.is_met:
        await _let_go(tx, found)
        return
    told = found.failed
    if (now.failed is None) == (told is None) or await _restate(tx, found, now.failed):
        told = now.failed
    await dependency.advance(tx, number, now.pending, told)


async def _let_go(tx: Transaction, found: Dependency) -> None:
    if found.predecessors.outputs_of:
        await _give_inputs(tx, found)
    if await _move(tx, [(found.jobs, released())], State.HELD, WAITS, BATCH) < BATCH:
        await dependency.delete(tx, found.dependency_id)
    else:
        await dependency.advance(tx, found.dependency_id, (), None)


async def _restate(tx: Transaction, found: Dependency, failed_id: int | None) -> bool:
    """Update the reason of the held jobs, after a predecessor failed or no longer counts as failed. Return whether all jobs were updated.

    `failed_id` is the failed predecessor; None if there is none.
    """
    before = Code.DEPENDENCY if failed_id is not None else Code.DEPENDENCY_FAILED
    (reason,) = await _reasons(tx, [(found, failed_id)])
    return await _move(tx, [(found.jobs, held(State.HELD, reason))], State.HELD, [before], BATCH) < BATCH


async def _give_inputs(tx: Transaction, found: Dependency) -> None:
    """Add the outputs of predecessors to the inputs of the jobs of a dependency that are still held."""
    archives = await dependency.outputs(tx, found.predecessors.outputs_of)
    directories = {each.directory for each in archives}
    changed: dict[int, str] = {}
    for description_id, body in (await dependency.bodies(tx, found.jobs)).items():
        description = _decoder.decode(body)
        # A job that was retried from another has these inputs already.
        others = (each for each in description.input_sandbox if each.directory not in directories)
        after = msgspec.structs.replace(description, input_sandbox=(*others, *archives))
        changed[description_id] = _encoder.encode(after).decode()
    await dependency.rewrite_bodies(tx, changed)


async def _move(
    tx: Transaction,
    moving: Sequence[tuple[Ranges, Steps]],
    state: State,
    codes: Iterable[Code] | None,
    limit: int,
) -> int:
    """Move jobs that are in this state, held for one of these codes (None: any). Return the number of moved jobs with rows of their own.

    At most `limit` jobs with rows are moved.
    """
    wanted = None if codes is None else sorted(codes)
    jobs = joined(each for ranges, _ in moving for each in ranges)
    steps_of = _lookup(moving)
    # Blocks first: jobs that leave them while locks are awaited are found among the rows.
    parts = await block.lock_selected(tx, JobFilter(ranges=jobs, scope=_EVERYBODY, states=(state,)))
    some = [(each, ranges) for each, ranges in parts if wanted is None or each.reason in wanted]
    await block.move(tx, [(each, ranges, steps_of(each.first)) for each, ranges in some], _SOURCE)
    ids = await dependency.lock_rows(tx, jobs, state, wanted, limit)
    found = await job.lock(tx, ids) if ids else {}
    moves = [
        JobMove(job=each, steps=steps_of(each.job_id), attempts=each.attempts, unstarted=each.unstarted)
        for each in found.values()
    ]
    await job.move(tx, moves, _SOURCE)
    return len(ids)


def _lookup(moving: Iterable[tuple[Ranges, Steps]]) -> Callable[[int], Steps]:
    """Return a function from a job's id to its steps. They are those of the last range that does not begin after this id."""
    ordered = sorted(((low, steps) for ranges, steps in moving for low, _ in ranges), key=itemgetter(0))
    lows = [low for low, _ in ordered]
    return lambda job_id: ordered[max(0, bisect_right(lows, job_id) - 1)][1]
