"""Stores new submissions in the database: their jobs, job arrays, task queues and answers, in few statements."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain
from operator import attrgetter

import msgspec

from services.job_manager import dependencies, job_orders
from services.job_manager.submission import parameter_lists
from wms.db import job, submission, sweep, task_queue
from wms.db.database import Transaction
from wms.db.submission import ExecutedCommand
from wms.ids import CommandId, Identity, JobId, TaskQueueId, joined
from wms.jobdesc.kind import JobKind, PartlyRead
from wms.jobdesc.predecessors import Predecessors
from wms.matching.grouping import Requirements
from wms.matching.requirements import key_of
from wms.messages import replies
from wms.messages.commands import Submit

Ranges = tuple[tuple[int, int], ...]

_KIND = attrgetter("kind")
_encoder = msgspec.json.Encoder()


class PreparedSubmission(msgspec.Struct, frozen=True):
    """A submission that is parsed and checked, as far as that is possible without the database.

    `required` are the requirements by kind of description. `foreseen` are the obstacles that keep some jobs from running anywhere.
    """

    digest: bytes
    jobs: list[PartlyRead]
    required: dict[JobKind, Requirements]
    count: int
    """The number of jobs of all its descriptions together."""
    foreseen: tuple[replies.Foreseen, ...]
    predecessors: dict[JobKind, Predecessors] = {}
    """By kind of description, the predecessors after which its jobs start. Kinds without predecessors are left out."""


class NewSubmission(msgspec.Struct, frozen=True):
    """A valid submission that was not stored before, with the stored parts of its parameter lists."""

    command: Submit
    prepared: PreparedSubmission
    kept: dict[int, tuple[parameter_lists.KeptPart, ...]]
    """Stored parts of parameter lists, by the position of their description in the submission."""


async def store(
    tx: Transaction, identity: Identity, orders: Sequence[NewSubmission]
) -> dict[CommandId, Ranges]:
    """Store submissions of one owner in this transaction. Return the ranges of their job ids, by command id."""
    jobs = [job for order in orders for job in order.prepared.jobs]
    required = {kind: wanted for order in orders for kind, wanted in order.prepared.required.items()}
    queues = await task_queue.find_or_make(tx, {key_of(wanted): wanted for wanted in required.values()})
    tq_ids = {kind: queues[key_of(wanted)] for kind, wanted in required.items()}
    count = sum(order.prepared.count for order in orders)
    first = await job.reserve(tx, count)
    firsts = list(map(JobId, accumulate((each.kind.jobs for each in jobs[:-1]), initial=first)))
    await job.describe(tx, firsts, [each.text for each in jobs])
    await _store_alone(tx, identity, zip(jobs, firsts, strict=True), tq_ids)
    kept = chain.from_iterable(_parts(order) for order in orders)
    swept = [
        _swept(read, its_first, its_parts, tq_ids)
        for read, its_first, its_parts in zip(jobs, firsts, kept, strict=True)
        if read.kind.is_array
    ]
    await sweep.insert(tx, identity, swept)
    wanted = {tq_ids[kind]: each for kind, each in required.items() if kind.is_array}
    for each in swept:
        task_queue.tell_swept(
            tx, each.tq_id, wanted[each.tq_id], each.user_priority, (each.first, each.first + each.count - 1)
        )
    await job.tell_queued(tx, first, count, identity)
    return await _remember(tx, identity.owner, orders, first)


async def _store_alone(
    tx: Transaction,
    identity: Identity,
    jobs: Iterable[tuple[PartlyRead, JobId]],
    tq_ids: Mapping[JobKind, TaskQueueId],
) -> None:
    given = {
        kind: (tq_id, kind.description.attempts_limit, kind.description.job_group)
        for kind, tq_id in tq_ids.items()
        if not kind.is_array
    }
    born = [
        job.NewJob(job_id, given[kind][0], read.name or kind.called, read.priority, *given[kind][1:])
        for read, job_id in jobs
        if (kind := read.kind) in given
    ]
    await job.insert(tx, identity, born)
    task_queue.tell_entered(tx, [(each.tq_id, each.user_priority, each.job_id) for each in born])


async def hold(
    tx: Transaction, owner: str, orders: Mapping[CommandId, NewSubmission], ids: Mapping[CommandId, Ranges]
) -> None:
    """Hold the new jobs of submissions that ask for it, and those that start after other jobs.

    `orders` are the stored submissions, and `ids` the ranges of their job ids, by command id.
    """
    held = [name for name, order in orders.items() if order.command.hold]
    if held:
        await job_orders.hold_new(tx, owner, [each for name in held for each in ids[name]])
    for name, order in orders.items():
        if order.prepared.predecessors:
            waiting = _waiting(order.prepared, ids[name][0][0])
            await dependencies.take(tx, waiting, is_held=order.command.hold)


def _waiting(prepared: PreparedSubmission, first: int) -> dict[Predecessors, Ranges]:
    """Return the jobs of a submission, whose ids begin at `first`, by their predecessors."""
    waiting: dict[Predecessors, list[tuple[int, int]]] = {}
    for kind in map(_KIND, prepared.jobs):
        if kind in prepared.predecessors:
            waiting.setdefault(prepared.predecessors[kind], []).append((first, first + kind.jobs - 1))
        first += kind.jobs
    return {each: joined(jobs) for each, jobs in waiting.items()}


def _parts(order: NewSubmission) -> Iterable[tuple[parameter_lists.KeptPart, ...]]:
    return (order.kept.get(place, ()) for place in range(len(order.prepared.jobs)))


def _swept(
    read: PartlyRead,
    first: JobId,
    kept: tuple[parameter_lists.KeptPart, ...],
    tq_ids: Mapping[JobKind, TaskQueueId],
) -> sweep.NewSweep:
    kind = read.kind
    return sweep.NewSweep(
        first=first,
        count=kind.jobs,
        description_id=first,
        tq_id=tq_ids[kind],
        name=read.name or kind.called,
        user_priority=float(read.priority),
        max_attempts=kind.description.attempts_limit,
        parameters=kind.description.parameters or dict.fromkeys(kept[0].samples if kept else (), ()),
        kept=tuple((each.kept, each.count) for each in kept),
        job_group=kind.description.job_group,
    )


async def _remember(
    tx: Transaction, owner: str, orders: Sequence[NewSubmission], first: int
) -> dict[CommandId, Ranges]:
    answers = _ranges(orders, first)
    await submission.take(
        tx,
        owner,
        [
            ExecutedCommand(
                order.command.command_id,
                order.prepared.digest,
                _encoder.encode(answers[order.command.command_id]).decode(),
            )
            for order in orders
        ],
    )
    return answers


def _ranges(orders: Sequence[NewSubmission], first: int) -> dict[CommandId, Ranges]:
    """Return the ranges of job ids by command id. The ids begin at `first`, and follow the order of the submissions."""
    answers: dict[CommandId, Ranges] = {}
    for order in orders:
        answers[order.command.command_id] = ((first, first + order.prepared.count - 1),)
        first += order.prepared.count
    return answers
