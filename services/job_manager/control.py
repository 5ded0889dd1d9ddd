"""What users order for jobs that exist: kill, hold, release, reschedule, remove."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from services.job_manager.answers import refuse
from services.job_manager.ledger import Ledger
from wms.auth.policy import Scope, scope
from wms.auth.principal import Principal
from wms.db import block, job, selection, submission
from wms.db.database import Transaction
from wms.db.selection import Page
from wms.db.submission import Taken
from wms.errors import Rejected
from wms.ids import CommandId, JobId, joined
from wms.job.block import Block, Range
from wms.job.job import Job, Stop, ordered
from wms.messages import replies
from wms.messages.commands import Control, Selector
from wms.messages.site_inbox import Kill, inbox

BATCH = 2_000
JOBS_LIMIT = 1_000_000
NAMED_LIMIT = 100


class _Done(msgspec.Struct):
    """What became of an order so far."""

    changed: int = 0
    unchanged: int = 0
    named: list[replies.Unchanged] = msgspec.field(default_factory=list)
    by_state: Counter[str] = msgspec.field(default_factory=Counter)
    """How many were left as they were, by their states."""


async def carry_out(tx: Transaction, principal: Principal, control: Control) -> None:
    """Carry out one order on every job that it means and that its sender may act on, and answer it."""
    before = await submission.taken(tx, principal.owner, [control.command_id])
    if control.command_id in before:
        answer = msgspec.json.decode(before[control.command_id].answer, type=replies.Controlled)
        answer = msgspec.structs.replace(answer, client=control.client, repeated=True)
    else:
        try:
            answer = await _carry_out(tx, principal, control)
        except Rejected as fault:
            refuse(tx, principal.owner, control.command_id, control.client, fault)
            return
        digest = msgspec.json.encode(control.selector)
        taken = Taken(control.command_id, digest, msgspec.json.encode(answer).decode())
        await submission.take(tx, principal.owner, [taken])
    tx.send(replies.inbox(principal.owner), control.client, answer)


async def kill(tx: Transaction, ids: Sequence[JobId], reason: str) -> None:
    """Kill jobs of the system's own, which are in no sweep."""
    if ids:
        order = Control(command_id=CommandId("system"), action="kill", selector=Selector(), reason=reason)
        await _order(tx, ids, order, "job_manager", _Done())


async def hold_new(tx: Transaction, owner: str, ranges: Sequence[Range]) -> None:
    """Hold jobs that this transaction has taken, so that nobody else ever sees them wait."""
    selector = Selector(ids=joined(ranges))
    order = Control(command_id=CommandId("system"), action="hold", selector=selector, reason="submitted so")
    await _order_all(tx, Scope(reach="all"), order, source_of(owner), _Done())


def source_of(owner: str) -> str:
    """Return what histories call a user as the source of a move."""
    return f"user {owner}"


async def _carry_out(tx: Transaction, principal: Principal, control: Control) -> replies.Controlled:
    done = _Done()
    selector = await selection.of_submission(tx, principal.owner, control.selector)
    control = msgspec.structs.replace(control, selector=selector)
    await _order_all(tx, scope(principal, control.action), control, source_of(principal.owner), done)
    await _name_strangers(tx, principal, control, done)
    return replies.Controlled(
        command_id=control.command_id,
        client=control.client,
        changed=done.changed,
        unchanged=tuple(done.named[:NAMED_LIMIT]),
        unchanged_total=done.unchanged,
        unchanged_by_state=dict(done.by_state),
    )


async def _order_all(tx: Transaction, may: Scope, control: Control, source: str, done: _Done) -> None:
    after: int | None = None
    # Blocks first: what leaves them while their locks are waited for is found among the rows.
    parts = await block.lock_selected(tx, block.wanted(may, control.selector))
    await _order_blocks(tx, parts, control, source, done)
    for _ in range(JOBS_LIMIT // BATCH):
        ids = await selection.select_rows(tx, may, control.selector, Page(BATCH, after))
        await _order(tx, ids, control, source, done)
        if len(ids) < BATCH:
            break
        after = ids[-1]


async def _order_blocks(
    tx: Transaction, parts: Sequence[block.Part], control: Control, source: str, done: _Done
) -> None:
    """Order what is in blocks: each job of a block as any other of it."""
    moves: list[block.Moving] = []
    for each, ranges in parts:
        order = ordered(each.job(JobId(ranges[0][0])), control.action, control.reason)
        if order.refused:
            _leave(each, ranges, control, done)
        else:
            done.changed += block.size(ranges)
            moves.append((each, ranges, order.steps))
    await block.move(tx, moves, source)


def _leave(left: Block, ranges: Sequence[Range], control: Control, done: _Done) -> None:
    done.unchanged += block.size(ranges)
    done.by_state[left.state] += block.size(ranges)
    for low, high in ranges:
        for job_id in range(low, min(high, low + NAMED_LIMIT) + 1):
            refused = ordered(left.job(JobId(job_id)), control.action, control.reason).refused
            done.named.append(replies.Unchanged(job_id, refused))


async def _order(tx: Transaction, ids: Sequence[JobId], control: Control, source: str, done: _Done) -> None:
    ledger = await Ledger.open(tx, ids, 0.0)
    stops: dict[Stop, list[Job]] = {}
    for job_id in ids:
        found = ledger.job(job_id)
        if found is None:
            continue
        order = ordered(found, control.action, control.reason)
        if order.refused:
            done.unchanged += 1
            done.by_state[found.state] += 1
            done.named.append(replies.Unchanged(job_id, order.refused))
            continue
        done.changed += 1
        if order.stop:
            stops.setdefault(order.stop, []).append(found)
        else:
            ledger.move(found, order.steps)
            if control.action == "reschedule":
                ledger.again_from_scratch(found)
            elif control.action == "release":
                ledger.released(found)
    await ledger.write(tx, source)
    for stop, jobs in stops.items():
        await job.ask_stop(tx, [each.job_id for each in jobs], stop)
        _tell_pilots(tx, jobs)


def _tell_pilots(tx: Transaction, jobs: Sequence[Job]) -> None:
    held: dict[tuple[str, str], list[Job]] = {}
    for each in jobs:
        if each.lease is not None and each.site is not None:
            held.setdefault((each.site, each.lease.pilot_id), []).append(each)
    for (site, pilot_id), several in held.items():
        lease = several[0].lease
        assert lease is not None
        kill = Kill(pilot_id=lease.pilot_id, jobs=tuple((each.job_id, each.epoch) for each in several))
        tx.send(inbox(site), pilot_id, kill)


async def _name_strangers(tx: Transaction, principal: Principal, control: Control, done: _Done) -> None:
    """Say of single ids that named no job of the asker's that there is none: another's is not even confirmed."""
    single = [JobId(low) for low, high in control.selector.ids if low == high]
    if not single:
        return
    own = await selection.select(
        tx,
        scope(principal, control.action),
        msgspec.structs.replace(control.selector, ids=tuple((each, each) for each in single), states=()),
        Page(len(single)),
    )
    for job_id in sorted(set(single) - set(own)):
        done.unchanged += 1
        done.named.append(replies.Unchanged(job_id, f"there is no job {job_id}"))
