"""Carries out users' orders on jobs: kill, hold, release, edit, reschedule and remove."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from services.job_manager import audit_trail, repeated_orders
from services.job_manager.dependants import Dependants
from services.job_manager.edit_orders import EditOrder, Moving
from services.job_manager.job_batch import JobBatch
from services.job_manager.refusals import refuse
from services.job_manager.submission import sandbox_claims
from wms.auth.policy import Scope, scope
from wms.auth.principal import Principal
from wms.db import block, selection, stop_order
from wms.db.database import Transaction
from wms.db.job_search import PageRequest
from wms.db.submission import ExecutedCommand
from wms.errors import Rejected
from wms.ids import CommandId, JobId, joined
from wms.job.block import Block, Range
from wms.job.job import Job, OrderEffect, Steps, Stop, StopOrder, ordered
from wms.job.state import State
from wms.messages import replies
from wms.messages.commands import Control, Selector

BATCH = 2_000
EDITED_BATCH = 200
"""The most jobs that are edited before other work of the event loop is done: each description is read and written anew, 0.4 ms for long ones."""
JOBS_LIMIT = 1_000_000
NAMED_LIMIT = 100
EDITED_LIMIT = 10_000
"""The most jobs without rows of their own (jobs of arrays) that one order may edit. Each of them gets a row."""


class _Done(msgspec.Struct):
    """The result of an order so far: changed and unchanged jobs."""

    changed: int = 0
    unchanged: int = 0
    named: list[replies.Unchanged] = msgspec.field(default_factory=list)
    by_state: Counter[str] = msgspec.field(default_factory=Counter)
    """Numbers of unchanged jobs by their states."""

    def leave(self, found: Job, why: str) -> None:
        """Count a job that is left unchanged, and note why."""
        self.unchanged += 1
        self.by_state[found.state] += 1
        self.named.append(replies.Unchanged(found.job_id, why))


class _Order(msgspec.Struct, frozen=True):
    """A user's order on jobs, with the source that histories name for it and its changes to descriptions."""

    control: Control
    source: str
    editing: EditOrder | None = None

    def decide(self, found: Job, dependants: Dependants | None = None, code: str = "") -> OrderEffect:
        """Return what the order does to one job.

        `dependants` holds the predecessors of jobs. `code` is the reason code for which the job is held.
        """
        special = dependants and dependants.decide(found, self.control.action, self.control.reason, code)
        if special:
            return special
        changes = self.editing.words if self.editing else ""
        return ordered(found, self.control.action, self.control.reason, changes)


async def carry_out(
    tx: Transaction, principal: Principal, control: Control, segments: tuple[int, ...]
) -> None:
    """Carry out an order on the chosen jobs that the sender may change, and answer in the sender's inbox.

    An order whose command id was used before only gets its answer again. `segments` are the CPU segments of task queues.
    """
    try:
        before = await repeated_orders.earlier(tx, principal, control)
        answer = _again(before, control) if before else await _carry_out(tx, principal, control, segments)
    except Rejected as fault:
        await audit_trail.refused(tx, principal, control, fault)
        refuse(tx, principal.owner, control.command_id, control.client, fault)
        return
    if before is None:
        await audit_trail.carried_out(tx, principal, control, audit_trail.in_words(answer))
        await repeated_orders.remember(tx, principal, control, answer)
    tx.send(*replies.address(principal.owner, control.client), answer)


def _again(before: ExecutedCommand, control: Control) -> replies.Controlled:
    answer = msgspec.json.decode(before.answer, type=replies.Controlled)
    return msgspec.structs.replace(answer, client=control.client, repeated=True)


async def kill(tx: Transaction, ids: Sequence[JobId], reason: str) -> None:
    """Kill jobs that belong to the system itself, such as test jobs (canaries). They must belong to no job array."""
    if ids:
        control = Control(command_id=CommandId("system"), action="kill", selector=Selector(), reason=reason)
        await _order(tx, ids, _Order(control, "job_manager"), _Done())


async def hold_new(tx: Transaction, owner: str, ranges: Sequence[Range]) -> None:
    """Hold new jobs of this transaction on behalf of their owner, before other processes see them wait. `ranges` are the ranges of their ids."""
    selector = Selector(ids=joined(ranges))
    control = Control(command_id=CommandId("system"), action="hold", selector=selector, reason="submitted so")
    await _order_all(tx, Scope(reach="all"), _Order(control, source_of(owner)), _Done())


def source_of(owner: str) -> str:
    """Return the name under which histories record a user as the source of a change."""
    return f"user {owner}"


async def _carry_out(
    tx: Transaction, principal: Principal, control: Control, segments: tuple[int, ...]
) -> replies.Controlled:
    _check(control)
    editing = EditOrder.of(principal, control, segments)
    if editing:
        new = sandbox_claims.digests_of(editing.archives)
        await sandbox_claims.check(tx, principal.identity, control.client, new)
    done = _Done()
    selector = await selection.of_submission(tx, principal.owner, control.selector)
    control = msgspec.structs.replace(control, selector=selector)
    order = _Order(control, source_of(principal.owner), editing)
    await _order_all(tx, scope(principal, control.action), order, done)
    await _name_strangers(tx, principal, control, done)
    return replies.Controlled(
        command_id=control.command_id,
        client=control.client,
        changed=done.changed,
        unchanged=tuple(done.named[:NAMED_LIMIT]),
        unchanged_total=done.unchanged,
        unchanged_by_state=dict(done.by_state),
    )


def _check(control: Control) -> None:
    if control.changes and control.action not in ("edit", "reschedule"):
        raise Rejected("BAD_ORDER", f"{control.action} changes nothing", "order edit or reschedule")


async def _order_all(tx: Transaction, may: Scope, order: _Order, done: _Done) -> None:
    after: int | None = None
    # Blocks first: jobs that leave them while locks are awaited are found among the rows.
    parts = await block.lock_selected(tx, block.wanted(may, order.control.selector))
    if order.editing is not None:
        parts = await _give_rows(tx, parts, order)
    await _order_blocks(tx, parts, order, done)
    most = BATCH if order.editing is None else EDITED_BATCH
    for _ in range(JOBS_LIMIT // most):
        ids = await selection.select_rows(tx, may, order.control.selector, PageRequest(most, after))
        await _order(tx, ids, order, done)
        if len(ids) < most:
            break
        after = ids[-1]


async def _give_rows(tx: Transaction, parts: Sequence[block.Part], order: _Order) -> list[block.Part]:
    """Give rows of their own to jobs of blocks that the order must change one by one. Return the remaining parts of blocks."""
    refused: list[block.Part] = []
    changing: list[block.Part] = []
    for each, ranges in parts:
        to = refused if order.decide(each.job(JobId(ranges[0][0]))).refused else changing
        to.append((each, ranges))
    count = sum(block.size(ranges) for _, ranges in changing)
    if count > EDITED_LIMIT:
        raise Rejected(
            "TOO_MANY_TO_EDIT",
            f"{count:,} jobs of sweeps were never with a pilot, and at most {EDITED_LIMIT:,} such are edited at once",
            "name fewer; or kill them and submit the sweep anew",
        )
    await block.give_rows(tx, changing)
    return refused


async def _order_blocks(tx: Transaction, parts: Sequence[block.Part], order: _Order, done: _Done) -> None:
    """Carry out the order on blocks, whose jobs are all changed alike, and note the result in `done`."""
    moves: list[block.Moving] = []
    dependants, parts = await Dependants.of_parts(tx, order.control.action, parts)
    for each, ranges in parts:
        decided = order.decide(each.job(JobId(ranges[0][0])), dependants, each.reason)
        if decided.refused:
            _leave(each, ranges, partial(order.decide, dependants=dependants, code=each.reason), done)
        else:
            done.changed += block.size(ranges)
            moves.append((each, ranges, decided.steps))
    await block.move(tx, moves, order.source)
    await dependants.let_go(tx, order.control.action, ((ranges, each.reason) for each, ranges, _ in moves))


def _leave(left: Block, ranges: Sequence[Range], decide: Callable[[Job], OrderEffect], done: _Done) -> None:
    done.unchanged += block.size(ranges)
    done.by_state[left.state] += block.size(ranges)
    for low, high in ranges:
        for job_id in range(low, min(high, low + NAMED_LIMIT) + 1):
            done.named.append(replies.Unchanged(job_id, decide(left.job(JobId(job_id))).refused))


async def _order(tx: Transaction, ids: Sequence[JobId], order: _Order, done: _Done) -> None:
    job_batch = await JobBatch.open(tx, ids, 0.0)
    stops: dict[Stop, list[Job]] = {}
    moving: Moving = []
    jobs = list(filter(None, map(job_batch.job, ids)))
    held = [each.job_id for each in jobs if each.state is State.HELD]
    dependants = await Dependants.of_rows(tx, order.control.action, held)
    for found in jobs:
        decided = order.decide(found, dependants, dependants.codes.get(found.job_id, ""))
        if decided.refused:
            done.leave(found, decided.refused)
        elif decided.stop:
            stops.setdefault(decided.stop, []).append(found)
        else:
            moving.append((found, decided.steps))
    if order.editing is not None and moving:
        moving = await _edited(tx, job_batch, moving, order.editing, done)
    for found, steps in moving:
        _move(job_batch, found, steps, order.control)
    done.changed += len(moving) + sum(map(len, stops.values()))
    await job_batch.write(tx, order.source)
    moved = ((found.job_id, dependants.codes.get(found.job_id, "")) for found, _ in moving)
    await dependants.let_go(tx, order.control.action, (([(job_id, job_id)], code) for job_id, code in moved))
    for stop, jobs in stops.items():
        by = StopOrder(order.source, order.control.reason)
        await stop_order.order(tx, jobs, stop, by)


async def _edited(
    tx: Transaction, job_batch: JobBatch, moving: Moving, editing: EditOrder, done: _Done
) -> Moving:
    """Edit the jobs, and note in `done` those that cannot be edited. Return the moves of the others."""
    jobs = {found.job_id: found for found, _ in moving}
    left, refused = await editing.apply(tx, job_batch, moving)
    for job_id, why in refused.items():
        done.leave(jobs[job_id], why)
    return left


def _move(job_batch: JobBatch, found: Job, steps: Steps, control: Control) -> None:
    job_batch.move(found, steps)
    if control.action == "reschedule":
        job_batch.reset_attempts(found)
    elif control.action == "release" or (control.action == "edit" and found.state is State.HELD):
        job_batch.reset_losses(found)


async def _name_strangers(tx: Transaction, principal: Principal, control: Control, done: _Done) -> None:
    """Report single ids of the order as unknown, unless the sender may change the job.

    A job of others and a missing job get the same answer, so that nobody learns which jobs others have.
    """
    single = [JobId(low) for low, high in control.selector.ids if low == high]
    if not single:
        return
    own = await selection.select(
        tx,
        scope(principal, control.action),
        msgspec.structs.replace(control.selector, ids=tuple((each, each) for each in single), states=()),
        PageRequest(len(single)),
    )
    for job_id in sorted(set(single) - set(own)):
        done.unchanged += 1
        done.named.append(replies.Unchanged(job_id, f"there is no job {job_id}"))
