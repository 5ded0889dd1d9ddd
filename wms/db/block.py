"""Blocks in the database: consecutive jobs of a job array (sweep) that share one row.

They are selected, cut, moved as one, and turned into job rows. Before a block is cut, its sweep is locked, and the blocks are read in a
later statement. They may have been cut while the lock was awaited.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import repeat
from typing import Any

import asyncpg
import msgspec

from wms.auth.policy import Scope
from wms.db import sweep, task_queue
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import JobId, TaskQueueId, joined
from wms.job.block import Block, BlockMove, Range
from wms.job.job import Steps
from wms.job.state import State
from wms.jobdesc.array import filler
from wms.messages import events, queue_changes
from wms.messages.commands import Selector

SQL = load(__file__)

CHUNK = 1_000
"""How many jobs of a block get rows, or have their names computed, in one step at most."""
FEW = 16
"""How many jobs of a block get rows in one step at least."""
AHEAD = 8
"""For each job that needs a row, the number of jobs of its block that get rows with it, within `FEW` and `CHUNK`.

A further row costs less than a further request. The bounds keep a pass over many job arrays from making rows that are used only minutes
later.
"""
HIGHEST = 2**63 - 2
EVERYTHING: Range = (1, HIGHEST)

_history = msgspec.json.Decoder(tuple[BlockMove, ...])


Part = tuple[Block, list[Range]]
"""A block, and the ranges of ids of those of its jobs that were chosen, in order."""


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions by which jobs are selected: ranges of ids in order, what the asking user may see, and the criteria of a selector.

    None or an empty value sets no condition.
    """

    ranges: tuple[Range, ...]
    scope: Scope
    owner: str | None = None
    states: tuple[State, ...] = ()
    site: str | None = None
    name: str | None = None
    job_group: str | None = None
    changed_since: datetime | None = None

    @property
    def columns(self) -> tuple[Any, ...]:
        """Return the statement parameters, in order, that `select`, `count` and `lock_selected` share."""
        low, high = [low for low, _ in self.ranges], [high for _, high in self.ranges]
        beside = (self.owner, list(self.states) or None, self.site, self.job_group, self.changed_since)
        return (low, high, self.scope.owner, self.scope.group, self.scope.vo, *beside)


def wanted(scope: Scope, selector: Selector, within: Range = EVERYTHING) -> JobFilter:
    """Return the conditions of a user's selector, restricted to ids within `within` and to what the scope may see."""
    ranges = joined(selector.ids) if selector.ids else (EVERYTHING,)
    return JobFilter(
        ranges=tuple(_clipped(ranges, *within)),
        scope=scope,
        owner=selector.owner,
        states=selector.states,
        site=selector.site,
        name=selector.name,
        job_group=selector.job_group,
        changed_since=selector.changed_since,
    )


def _clipped(ranges: Iterable[Range], low: int, high: int) -> Iterator[Range]:
    for first, last in ranges:
        if first <= high and last >= low:
            yield max(first, low), min(last, high)


# --- looking --------------------------------------------------------------------------------------


async def select(tx: Transaction, wanted: JobFilter, *, newest: bool, limit: int) -> list[Part]:
    """Return blocks that contain selected jobs, and which of their jobs are selected: lowest ids first, or highest first with `newest`.

    The blocks contain at least `limit` selected jobs, if there are that many. With a condition on names, all blocks are read.
    """
    if not wanted.ranges:
        return []
    most = limit if wanted.name is None else None
    rows = await tx.fetch(SQL["select"], *wanted.columns, newest, most)
    return await _parts(tx, rows, wanted)


async def count(tx: Transaction, wanted: JobFilter) -> Counter[tuple[str, str]]:
    """Return how many selected jobs are in blocks, by state and reason code. Jobs with rows of their own are not counted."""
    counts = Counter[tuple[str, str]]()
    if wanted.ranges and wanted.name is None:
        for row in await tx.fetch(SQL["count"], *wanted.columns):
            counts[row["state"], row["reason"]] += row["jobs"]
    elif wanted.ranges:
        for block, ranges in await select(tx, wanted, newest=False, limit=0):
            counts[block.state, block.reason] += size(ranges)
    return counts


async def of_jobs(tx: Transaction, job_ids: Sequence[JobId]) -> list[Block]:
    """Return the blocks that contain any of these jobs. Jobs with rows of their own are in no block."""
    return [_block(row) for row in await tx.fetch(SQL["of_jobs"], job_ids)]


async def lines(tx: Transaction, job_ids: Sequence[JobId]) -> dict[JobId, dict[str, Any]]:
    """Return what a job list shows of these jobs, as far as they are in blocks. Jobs with rows of their own are absent."""
    found: dict[JobId, dict[str, Any]] = {}
    for block in await of_jobs(tx, job_ids):
        mine = sorted(each for each in job_ids if block.first <= each <= block.last)
        for low, high in joined((each, each) for each in mine):
            for job_id, name in enumerate(await names(tx, block, (low, high)), start=low):
                found[JobId(job_id)] = _line(block, JobId(job_id), name)
    return found


def _line(block: Block, job_id: JobId, name: str) -> dict[str, Any]:
    return {
        "job_id": job_id,
        "name": name,
        "job_group": block.job_group,
        "owner": block.owner,
        "owner_group": block.owner_group,
        "vo": block.vo,
        "state": block.state,
        "reason": block.reason,
        "site": None,
        "attempts": 0,
        "submitted_at": block.submitted_at,
        "changed_at": block.changed_at,
    }


async def waiting(
    tx: Transaction, tq_ids: Sequence[TaskQueueId] | None = None
) -> list[tuple[TaskQueueId, float, Range]]:
    """Return the blocks whose jobs wait in these task queues, or in any if `tq_ids` is None.

    Each is a triple: the task queue, the user's priority, and the range of job ids.
    """
    rows = await tx.fetch(SQL["waiting"], tq_ids)
    return [(row["tq_id"], row["user_priority"], (row["first"], row["last"])) for row in rows]


def size(ranges: Iterable[Range]) -> int:
    """Return the number of ids in the ranges, which include both ends."""
    return sum(high - low + 1 for low, high in ranges)


async def names(tx: Transaction, block: Block, part: Range) -> list[str]:
    """Return the names of the jobs in a range of ids within the block, in the order of their ids. Placeholders are filled in."""
    low, high = part[0] - block.sweep, part[1] - block.sweep
    if "{" not in block.name:
        return [block.name] * (high - low + 1)
    if any(each in block.name for each in block.parameters):
        values = await sweep.parameters(tx, block.description_id, low, high)
    else:
        values = [{}] * (high - low + 1)
    return [filler(index, each)(block.name) for index, each in enumerate(values, start=low)]


async def _parts(tx: Transaction, rows: Iterable[asyncpg.Record], wanted: JobFilter) -> list[Part]:
    parts: list[Part] = []
    for row in rows:
        block = _block(row)
        ranges = list(_clipped(wanted.ranges, block.first, block.last))
        if wanted.name is not None:
            ranges = await _named(tx, block, ranges, wanted.name)
        if ranges:
            parts.append((block, ranges))
    return parts


async def _named(tx: Transaction, block: Block, ranges: list[Range], pattern: str) -> list[Range]:
    """Return those ids in the ranges whose job names match a pattern with * and ?.

    Names are computed only if the text before their first placeholder leaves the answer open.
    """
    begins, same = re.split(r"[*?]", pattern, maxsplit=1)[0], block.name.partition("{")[0]
    if not same.startswith(begins) and not ("{" in block.name and begins.startswith(same)):
        return []
    if same.startswith(begins) and pattern == f"{begins}*":
        return ranges
    fits = re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL).fullmatch
    if "{" not in block.name:
        return ranges if fits(block.name) else []
    found: list[Range] = []
    for low, high in ranges:
        for start in range(low, high + 1, CHUNK):
            named = await names(tx, block, (start, min(high, start + CHUNK - 1)))
            found += [(n, n) for n, name in enumerate(named, start=start) if fits(name)]
    return list(joined(found))


def _block(row: asyncpg.Record) -> Block:
    fields = {name: row[name] for name in Block.__struct_fields__}
    fields |= {"state": State(row["state"]), "history": _history.decode(row["history"])}
    return Block(**{**fields, "parameters": tuple(row["parameters"])})


# --- cutting --------------------------------------------------------------------------------------


async def lock_selected(tx: Transaction, wanted: JobFilter) -> list[Part]:
    """Lock the job arrays of the blocks with selected jobs until the transaction ends, so that nobody else cuts the blocks.

    Return these blocks as they are once the locks are held, and which of their jobs are selected.
    """
    if not wanted.ranges:
        return []
    locked = await tx.fetch(SQL["lock_selected"], *wanted.columns)
    if not locked:
        return []
    rows = await tx.fetch(SQL["of_locked"], *wanted.columns, [row["first"] for row in locked])
    return await _parts(tx, rows, wanted)


Moving = tuple[Block, list[Range], Steps]
"""A block, the ranges of ids of those of its jobs that change state, and the steps of that change."""


async def move(tx: Transaction, moving: Sequence[Moving], source: str) -> None:
    """Apply steps to the given jobs of blocks, and cut the blocks where jobs stay behind. The caller has locked the job arrays.

    States and history are stored, events are sent, and matchers are told which jobs left or entered their queues. `source` names the user
    or service that caused the change.
    """
    if not moving:
        return
    now = await tx.now()
    moved = [
        (each, each.part(low, high).moved(steps, now, source))
        for each, ranges, steps in moving
        for low, high in ranges
    ]
    left = [rest for each, ranges, _ in moving for rest in each.without(ranges)]
    await replace(tx, [each for each, _, _ in moving], [*left, *(after for _, after in moved)])
    for before, after in moved:
        for step in after.history[before.event_seq :]:
            tx.send(events.TOPIC, str(after.first), _fact(after, step))
    await _tell_matchers(tx, moved)


def _fact(block: Block, move: BlockMove) -> events.SweepMoved:
    return events.SweepMoved(
        first=block.first,
        count=block.size,
        seq=move.seq,
        at=move.at,
        event=move.event,
        state=move.state,
        owner=block.owner,
        owner_group=block.owner_group,
        vo=block.vo,
        reason=move.reason,
        text=move.text,
    )


async def _tell_matchers(tx: Transaction, moved: Sequence[tuple[Block, Block]]) -> None:
    """Tell the matchers which jobs left the task queues, then which entered. A job that waits again is in both messages."""
    gone = [(after.first, after.last) for before, after in moved if before.state is State.WAITING]
    if gone:
        tx.send(queue_changes.TOPIC, "", queue_changes.Left(job_ids=(), ranges=joined(gone)))
    come = [after for _, after in moved if after.state is State.WAITING]
    if come:
        await task_queue.keep(tx, (each.tq_id for each in come))
        required = await task_queue.read(tx, (each.tq_id for each in come))
        for each in come:
            task_queue.tell_swept(
                tx, each.tq_id, required[each.tq_id], each.user_priority, (each.first, each.last)
            )


async def replace(tx: Transaction, old: Sequence[Block], new: Sequence[Block]) -> None:
    """Delete the old blocks and insert the new ones. The caller has locked their job arrays."""
    await tx.execute(SQL["delete"], [each.first for each in old])
    if new:
        await tx.execute(
            SQL["insert"],
            [each.first for each in new],
            [each.last for each in new],
            [each.sweep for each in new],
            [each.state for each in new],
            [each.event_seq for each in new],
            [each.reason for each in new],
            [each.changed_at for each in new],
            [msgspec.json.encode(each.history).decode() for each in new],
        )


async def expand(tx: Transaction, job_ids: Iterable[JobId]) -> bool:
    """Give job rows to those of these jobs that wait in blocks, and to some jobs that follow each.

    Return whether any of them was in a block.
    """
    ids = sorted(job_ids)
    locked = {row["first"] for row in await tx.fetch(SQL["lock_waiting"], ids)}
    if not locked:
        return False
    # Jobs that another transaction gave rows meanwhile have left their blocks.
    blocks = [each for each in await of_jobs(tx, ids) if each.sweep in locked and each.state is State.WAITING]
    at_once = max(FEW, min(CHUNK, AHEAD * len(ids) // max(1, len(blocks))))
    cuts = [(each, list(each.around(_inside(each, ids), at_once))) for each in blocks]
    await _insert_jobs(tx, [(block, part) for block, ranges in cuts for part in ranges])
    await replace(tx, blocks, [left for block, ranges in cuts for left in block.without(ranges)])
    return True


async def give_rows(tx: Transaction, parts: Sequence[Part]) -> None:
    """Give job rows to the chosen jobs of blocks, and cut these out of the blocks. The caller has locked their job arrays."""
    await _insert_jobs(tx, [(block, part) for block, ranges in parts for part in ranges])
    if parts:
        rest = [left for block, ranges in parts for left in block.without(ranges)]
        await replace(tx, [block for block, _ in parts], rest)


def _inside(block: Block, ascending: Sequence[JobId]) -> Sequence[JobId]:
    return ascending[bisect_left(ascending, block.first) : bisect_right(ascending, block.last)]


async def _insert_jobs(tx: Transaction, parts: Iterable[tuple[Block, Range]]) -> None:
    """Insert job rows for ranges of ids within blocks. The blocks themselves stay as they are."""
    leaving: list[tuple[int, int, str, str | None]] = []
    for block, (low, high) in parts:
        values: Sequence[str | None] = [None] * (high - low + 1)
        if block.parameters:
            found = await sweep.parameters(tx, block.description_id, low - block.sweep, high - block.sweep)
            values = [msgspec.json.encode(each).decode() for each in found]
        named = await names(tx, block, (low, high))
        leaving += zip(repeat(block.first), range(low, high + 1), named, values)
    if leaving:
        await tx.execute(SQL["insert_jobs"], *zip(*leaving, strict=True))
