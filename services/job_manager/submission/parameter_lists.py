"""Long parameter lists of job arrays. Parts are checked and stored as they arrive; a submission then names them by their ids."""

import hashlib
from collections.abc import Sequence
from itertools import chain

import msgspec

from services.job_manager.refusals import refuse
from services.job_manager.submission import sandbox_claims
from wms.auth.policy import allowed
from wms.auth.principal import Principal
from wms.db import submission, sweep
from wms.db.database import Transaction
from wms.db.submission import ExecutedCommand
from wms.decoding import UNDECODABLE
from wms.errors import Rejected
from wms.ids import CommandId
from wms.jobdesc.array import CHUNK
from wms.jobdesc.conflicts import PARAMETERS_LIMIT, large_parameters, samples, size_of
from wms.jobdesc.description import JobDescription
from wms.jobdesc.problem import InvalidDescription
from wms.jobdesc.validation import problems, validate
from wms.messages import replies
from wms.messages.commands import AddChunks, LongLists, Submit

UNUSED_PARTS = 1_000
UNUSED_BYTES = 4 * PARAMETERS_LIMIT
"""The most bytes of stored parts that one owner may have and no submission has used yet: enough for four of the largest lists."""

_decoder = msgspec.json.Decoder(list[str])


class KeptPart(msgspec.Struct, frozen=True):
    """A stored part of parameter lists, whose values were checked. `kept` is its number in the database, `count` its number of jobs."""

    kept: int
    count: int
    samples: dict[str, tuple[str, ...]]
    """Some values of each list, by the list's name. The description that will use this part is checked with them."""
    size: int = 0
    """The total size of all values in bytes."""
    unclaimed: frozenset[str] = frozenset()
    """The names of lists that refer to archives which the owner had not sent through the gateway before them."""


Parts = dict[CommandId, KeptPart]


async def keep(tx: Transaction, principal: Principal, message: AddChunks) -> None:
    """Store a part of parameter lists in this transaction, or refuse it. The answer goes to the sender's inbox."""
    try:
        await _keep(tx, principal, message)
    except Rejected as fault:
        refuse(tx, principal.owner, message.command_id, message.client, fault)
        return
    kept = replies.ValuesKept(command_id=message.command_id, client=message.client)
    tx.send(*replies.address(principal.owner, message.client), kept)


async def _keep(tx: Transaction, principal: Principal, message: AddChunks) -> None:
    if not allowed(principal, "submit", *principal.identity):
        raise Rejected("NOT_ALLOWED", "this token may not submit jobs", "ask for one that may")
    lists = _read(message)
    count = len(next(iter(lists.values())))
    chunks = sweep.chunked(lists, count)
    digest = hashlib.sha256("\n".join(chunks).encode()).digest()
    before = await submission.taken(tx, principal.owner, [message.command_id])
    if message.command_id in before:
        if before[message.command_id].digest != digest:
            raise Rejected("ID_REUSED", f"the id {message.command_id} was used before", "choose another id")
        return
    size = size_of(lists)
    await _check_room(tx, principal.owner, size)
    kept = await sweep.keep(tx, principal.owner, message.command_id, chunks, size)
    unclaimed = await sandbox_claims.unclaimed_lists(tx, principal.identity, message.client, lists)
    part = KeptPart(kept, count, {name: samples(values) for name, values in lists.items()}, size, unclaimed)
    answer = msgspec.json.encode(part).decode()
    await submission.take(tx, principal.owner, [ExecutedCommand(message.command_id, digest, answer)])


async def _check_room(tx: Transaction, owner: str, size: int) -> None:
    parts, held = await sweep.unused_of(tx, owner)
    if parts < UNUSED_PARTS and held + size <= UNUSED_BYTES:
        return
    raise Rejected(
        "TOO_MANY_UNUSED_LISTS",
        f"{parts:,} parts of your lists, {held:,} bytes, wait for the submissions that use them;"
        f" {UNUSED_PARTS:,} parts and {UNUSED_BYTES:,} bytes may",
        "submit what they are for, or wait: unused ones are forgotten after an hour",
    )


def _read(message: AddChunks) -> dict[str, tuple[str, ...]]:
    """Return the values of all chunks, by list name. Raise Rejected with the positions of all faults."""
    try:
        chunks = [{name: _decoder.decode(raw) for name, raw in chunk.items()} for chunk in message.chunks]
    except UNDECODABLE as error:
        raise Rejected("MESSAGE_INVALID", str(error)) from None
    if len(set(map(frozenset, chunks))) == 1:
        lists = {name: tuple(chain.from_iterable(chunk[name] for chunk in chunks)) for name in chunks[0]}
        if wrong := validate(JobDescription(executable="true", parameters=lists)):
            raise InvalidDescription(wrong)
        if _are_regular([set(map(len, chunk.values())) for chunk in chunks]):
            return lists
    raise Rejected(
        "LISTS_UNEQUAL",
        f"the chunks of its lists differ in names or are not of {CHUNK:,} jobs",
        f"all but the last have {CHUNK:,} values a name, and all have the same names",
    )


def _are_regular(counts: Sequence[set[int]]) -> bool:
    *before, last = counts
    return all(each == {CHUNK} for each in before) and len(last) == 1 and 1 <= max(last) <= CHUNK


async def find(tx: Transaction, owner: str, submits: Sequence[Submit]) -> Parts:
    """Return the stored parts that these submissions of the owner name, by command id of the part. Parts that a submission has used are left out."""
    named = [part for submit in submits for lists in submit.lists for part in lists.parts]
    if not named:
        return {}
    found: Parts = {}
    for command_id, taken in (await submission.taken(tx, owner, named)).items():
        try:
            found[command_id] = msgspec.json.decode(taken.answer, type=KeptPart)
        except msgspec.ValidationError:
            continue
    unused = await sweep.unused(tx, [each.kept for each in found.values()])
    return {command_id: part for command_id, part in found.items() if part.kept in unused}


def joined(parts: Parts, lists: LongLists, description: JobDescription) -> tuple[KeptPart, ...]:
    """Return the parts of one description's lists, in order. `parts` are those that were found.

    Raise Rejected if one is missing or used twice, or if they do not fit each other or the description.
    """
    missing = [each for each in lists.parts if each not in parts]
    if missing or len(set(lists.parts)) < len(lists.parts):
        raise Rejected(
            "LISTS_MISSING",
            f"of the {len(lists.parts):,} parts of its lists {len(missing):,} never came or were used already",
            "submit it again under another id",
        )
    mine = tuple(parts[each] for each in lists.parts)
    count = sum(each.count for each in mine)
    uneven = any(each.count % CHUNK for each in mine[:-1])
    names = {frozenset(each.samples) for each in mine}
    if uneven or len(names) != 1 or count != description.array or description.parameters:
        raise Rejected(
            "LISTS_UNEQUAL",
            f"the parts of its lists have values for {count:,} jobs, and it is an array of {description.array or 0:,}",
            "all parts but the last have whole thousands, and all have the same names",
        )
    if large := problems(large_parameters(sum(each.size for each in mine))):
        raise InvalidDescription(large)
    if wrong := validate(_sampled(description, mine)):
        raise InvalidDescription(wrong)
    return mine


def _sampled(description: JobDescription, parts: Sequence[KeptPart]) -> JobDescription:
    """Return the description with samples in place of its lists."""
    lists = {
        name: tuple(value for each in parts for value in each.samples[name]) for name in parts[0].samples
    }
    return msgspec.structs.replace(description, array=None, parameters=lists)
