"""Takes submissions: checked whole, stored whole, answered; many of one owner in few statements."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec

from services.job_manager import lists
from services.job_manager.admission import Admission
from services.job_manager.answers import refuse
from services.job_manager.foresight import Foresight, in_words
from wms.auth.policy import allowed
from wms.auth.principal import Principal
from wms.db import job, submission, sweep, task_queue
from wms.db.database import Transaction
from wms.db.submission import Taken
from wms.errors import Rejected
from wms.ids import CommandId, JobId, TaskQueueId
from wms.jobdesc.array import is_array, jobs_in, without_lists
from wms.jobdesc.description import JobDescription
from wms.jobdesc.from_json import read_json
from wms.jobdesc.problem import InvalidDescription, Problem
from wms.jobdesc.validation import ARRAY_LIMIT, validate
from wms.messages import replies
from wms.messages.commands import Submit
from wms.taskqueue.grouping import Requirements
from wms.taskqueue.intake import key_of, requirements_of

Identity = tuple[str, str, str]
"""Owner, group, VO."""

Ranges = tuple[tuple[int, int], ...]


class _Order(msgspec.Struct, frozen=True):
    """One Submit that is new, read and found right."""

    command: Submit
    digest: bytes
    descriptions: list[JobDescription]
    texts: list[str]
    """The same as they are to be stored."""
    required: list[Requirements]
    foreseen: tuple[replies.Foreseen, ...]
    kept: dict[int, tuple[lists.Part, ...]]
    """The parts of the long lists of descriptions, by their places."""


async def take(
    tx: Transaction,
    submits: Sequence[tuple[Principal, Submit]],
    segments: tuple[int, ...],
    foresight: Foresight,
    admission: Admission,
) -> None:
    """Take or refuse each submission, and answer it."""
    await foresight.look(tx)
    by_owner: dict[Identity, list[Submit]] = {}
    for principal, submit in submits:
        identity = (principal.owner, principal.group, principal.vo)
        if allowed(principal, "submit", *identity):
            by_owner.setdefault(identity, []).append(submit)
        else:
            fault = Rejected("NOT_ALLOWED", "this token may not submit jobs", "ask for one that may")
            refuse(tx, principal.owner, submit.command_id, submit.client, fault)
    for identity, mine in sorted(by_owner.items()):
        await _take_from(tx, identity, mine, partial(_order, identity, segments, foresight), admission)


async def _take_from(
    tx: Transaction,
    identity: Identity,
    submits: Sequence[Submit],
    order: Callable[[lists.Parts, Submit, bytes], _Order],
    admission: Admission,
) -> None:
    owner = identity[0]
    parts = await lists.find(tx, owner, submits)
    before = await submission.taken(tx, owner, [submit.command_id for submit in submits])
    orders: dict[CommandId, _Order] = {}
    repeated: list[Submit] = []
    for submit in submits:
        digest = _digest(submit)
        known = _known(submit.command_id, orders, before)
        if known == digest:
            repeated.append(submit)
            continue
        try:
            _check_unused(submit, known)
            read = order(parts, submit, digest)
        except Rejected as fault:
            refuse(tx, owner, submit.command_id, submit.client, fault)
            continue
        if submit.rehearsal:
            _answer(tx, owner, submit, (), read.foreseen)
        else:
            orders[submit.command_id] = read
            for each in submit.lists:
                for part in each.parts:
                    del parts[part]
    refused = await admission.refused(tx, identity, {each: _size(said) for each, said in orders.items()})
    for submit in [each for each in submits if each.command_id in refused]:
        orders.pop(submit.command_id, None)
        refuse(tx, owner, submit.command_id, submit.client, refused[submit.command_id])
    ids = await _store(tx, identity, list(orders.values())) if orders else {}
    for command_id, ranges in ids.items():
        _answer(tx, owner, orders[command_id].command, ranges, orders[command_id].foreseen)
    for submit in [each for each in repeated if each.command_id not in refused]:
        ranges = ids.get(submit.command_id) or _decoded(before[submit.command_id])
        _answer(tx, owner, submit, ranges, repeated=True)


def _order(  # noqa: PLR0917 - the first three are bound once for a batch
    identity: Identity,
    segments: tuple[int, ...],
    foresight: Foresight,
    parts: lists.Parts,
    submit: Submit,
    digest: bytes,
) -> _Order:
    descriptions, texts = _read(submit)
    kept = _kept(parts, submit, descriptions)
    required = [requirements_of(each, *identity, segments) for each in descriptions]
    foreseen = foresight.foresee(descriptions, required)
    if foreseen and submit.strict:
        raise Rejected(
            "CANNOT_RUN",
            "some of the jobs could run nowhere",
            "change what they ask for, or submit them without --strict to let them wait",
            in_words(foreseen),
        )
    return _Order(submit, digest, descriptions, texts, required, foreseen, kept)


def _kept(
    parts: lists.Parts, submit: Submit, descriptions: Sequence[JobDescription]
) -> dict[int, tuple[lists.Part, ...]]:
    places = [each.job for each in submit.lists]
    if len(set(places)) < len(places) or any(not 0 <= place < len(descriptions) for place in places):
        raise Rejected(
            "LISTS_MISSING", "its lists are for no description or twice for one", "submit it again"
        )
    return {each.job: lists.joined(parts, each, descriptions[each.job]) for each in submit.lists}


def _size(order: _Order) -> int:
    return sum(map(jobs_in, order.descriptions))


def _known(
    command_id: CommandId, orders: dict[CommandId, _Order], before: dict[CommandId, Taken]
) -> bytes | None:
    """Return the digest of what the command said when it came before, in this batch or earlier."""
    if command_id in orders:
        return orders[command_id].digest
    return before[command_id].digest if command_id in before else None


def _check_unused(submit: Submit, known: bytes | None) -> None:
    if known is not None:
        raise Rejected(
            "ID_REUSED",
            f"the id {submit.command_id} was used before for another submission",
            "choose another id",
        )


def _digest(submit: Submit) -> bytes:
    digest = hashlib.sha256()
    for raw in submit.jobs:
        digest.update(bytes(raw))
        digest.update(b"\n")
    for each in submit.lists:
        digest.update(repr((each.job, each.parts)).encode())
    return digest.digest()


_decoder = msgspec.json.Decoder(JobDescription)
_encoder = msgspec.json.Encoder()


def _read(submit: Submit) -> tuple[list[JobDescription], list[str]]:
    """Return what is to be stored of a submission, as descriptions and as JSON."""
    descriptions: list[JobDescription] = []
    texts: list[str] = []
    problems: list[Problem] = []
    for n, raw in enumerate(submit.jobs):
        try:
            description, text = _read_one(bytes(raw))
        except InvalidDescription as invalid:
            problems += [
                msgspec.structs.replace(each, place=f"jobs[{n}].{each.place}") for each in invalid.problems
            ]
            continue
        descriptions.append(description)
        texts.append(text)
    if problems:
        raise InvalidDescription(problems)
    count = sum(map(jobs_in, descriptions))
    if count > ARRAY_LIMIT:
        raise Rejected(
            "TOO_MANY_JOBS", f"{count:,} jobs in one submission are over {ARRAY_LIMIT:,}", "split it"
        )
    return descriptions, texts


def _read_one(raw: bytes) -> tuple[JobDescription, str]:
    """Read what our own tools write. Encoded again it must be the same: then no key was doubled or passed over."""
    try:
        description = _decoder.decode(raw)
    except msgspec.DecodeError:
        description = None
    if description is None or _encoder.encode(description) != raw:
        (description,) = read_json(raw)
        raw = _encoder.encode(description)
    elif problems := validate(description):
        raise InvalidDescription(problems)
    stored = _encoder.encode(without_lists(description)) if is_array(description) else raw
    return description, stored.decode()


async def _store(tx: Transaction, identity: Identity, orders: Sequence[_Order]) -> dict[CommandId, Ranges]:
    descriptions = [each for order in orders for each in order.descriptions]
    required = [each for order in orders for each in order.required]
    queues = await task_queue.find_or_make(tx, required)
    tq_ids = [queues[key_of(each)] for each in required]
    count = sum(map(jobs_in, descriptions))
    first = await job.reserve(tx, count)
    firsts = list(_firsts(descriptions, first))
    await job.describe(tx, firsts, [each for order in orders for each in order.texts])
    kept = [order.kept.get(place, ()) for order in orders for place in range(len(order.descriptions))]
    jobs, sweeps = _born(zip(descriptions, firsts, tq_ids, kept, strict=True))
    await job.insert(tx, identity, jobs)
    await sweep.insert(tx, identity, sweeps)
    task_queue.tell_entered(tx, [(each.tq_id, each.user_priority, each.job_id) for each in jobs])
    requirements = dict(zip(tq_ids, required, strict=True)) if sweeps else {}
    for each in sweeps:
        swept = (each.first, each.first + each.count - 1)
        task_queue.tell_swept(tx, each.tq_id, requirements[each.tq_id], each.user_priority, swept)
    await job.tell_queued(tx, first, count, identity)
    answers = _ranges(orders, first)
    await submission.take(
        tx,
        identity[0],
        [
            Taken(
                order.command.command_id,
                order.digest,
                _encoder.encode(answers[order.command.command_id]).decode(),
            )
            for order in orders
        ],
    )
    return answers


def _firsts(descriptions: Iterable[JobDescription], first: int) -> Iterable[JobId]:
    """Return the first id of each, which follow each other in the order of the descriptions."""
    for description in descriptions:
        yield JobId(first)
        first += jobs_in(description)


def _born(
    described: Iterable[tuple[JobDescription, JobId, TaskQueueId, tuple[lists.Part, ...]]],
) -> tuple[list[job.Born], list[sweep.Born]]:
    jobs: list[job.Born] = []
    sweeps: list[sweep.Born] = []
    for description, first, tq_id, kept in described:
        name = description.name or description.executable.rpartition("/")[2][:200]
        priority, attempts = float(description.priority), description.max_attempts
        if not is_array(description):
            jobs.append(job.Born(first, tq_id, name, priority, attempts))
            continue
        swept = sweep.Born(
            first=first,
            count=jobs_in(description),
            description_id=first,
            tq_id=tq_id,
            name=name,
            user_priority=priority,
            max_attempts=attempts,
            parameters=description.parameters or dict.fromkeys(kept[0].extremes if kept else (), ()),
            kept=tuple((each.kept, each.count) for each in kept),
        )
        sweeps.append(swept)
    return jobs, sweeps


def _ranges(orders: Sequence[_Order], first: int) -> dict[CommandId, Ranges]:
    """Share out the ids, which follow each other in the order of the submissions."""
    answers: dict[CommandId, Ranges] = {}
    for order in orders:
        count = _size(order)
        answers[order.command.command_id] = ((first, first + count - 1),)
        first += count
    return answers


def _decoded(taken: Taken) -> Ranges:
    return msgspec.json.decode(taken.answer, type=Ranges)


def _answer(
    tx: Transaction,
    owner: str,
    submit: Submit,
    ids: Ranges,
    foreseen: tuple[replies.Foreseen, ...] = (),
    *,
    repeated: bool = False,
) -> None:
    answer = replies.Submitted(
        command_id=submit.command_id,
        client=submit.client,
        ids=ids,
        repeated=repeated,
        warnings=in_words(foreseen),
        foreseen=foreseen,
    )
    tx.send(replies.inbox(owner), submit.client, answer)
