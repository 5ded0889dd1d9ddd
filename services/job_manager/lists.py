"""Long lists of parameters: kept part by part, checked as they come, and found again by the submission that names them."""

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from services.job_manager.answers import refuse
from wms.auth.policy import allowed
from wms.auth.principal import Principal
from wms.db import submission, sweep
from wms.db.database import Transaction
from wms.db.submission import Taken
from wms.errors import Rejected
from wms.ids import CommandId
from wms.jobdesc.description import JobDescription
from wms.jobdesc.problem import InvalidDescription
from wms.jobdesc.validation import extremes, validate
from wms.messages import replies
from wms.messages.commands import AddValues, LongLists, Submit


class Part(msgspec.Struct, frozen=True):
    """A part that is kept: where, of how many jobs, and the values that rules between fields may object to."""

    kept: int
    count: int
    extremes: dict[str, tuple[str, ...]]


Parts = dict[CommandId, Part]


async def keep(tx: Transaction, principal: Principal, message: AddValues) -> None:
    """Keep a part, or refuse it, and answer."""
    try:
        await _keep(tx, principal, message)
    except Rejected as fault:
        refuse(tx, principal.owner, message.command_id, message.client, fault)
        return
    kept = replies.ValuesKept(command_id=message.command_id, client=message.client)
    tx.send(replies.inbox(principal.owner), message.client, kept)


async def _keep(tx: Transaction, principal: Principal, message: AddValues) -> None:
    if not allowed(principal, "submit", principal.owner, principal.group, principal.vo):
        raise Rejected("NOT_ALLOWED", "this token may not submit jobs", "ask for one that may")
    few = _checked(message.values)
    count = len(next(iter(message.values.values())))
    chunks = sweep.chunked(message.values, count)
    digest = hashlib.sha256("\n".join(chunks).encode()).digest()
    before = await submission.taken(tx, principal.owner, [message.command_id])
    if message.command_id in before:
        if before[message.command_id].digest != digest:
            raise Rejected("ID_REUSED", f"the id {message.command_id} was used before", "choose another id")
        return
    part = Part(await sweep.keep(tx, chunks), count, few)
    answer = msgspec.json.encode(part).decode()
    await submission.take(tx, principal.owner, [Taken(message.command_id, digest, answer)])


def _checked(lists: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return the values that rules may object to; InvalidDescription with the places of all that is wrong, if they do."""
    if len({len(values) for values in lists.values()}) == 1 and all(lists.values()):
        few = extremes(lists)
        if not validate(JobDescription(executable="true", parameters=_even(few))):
            return few
    whole = JobDescription(executable="true", parameters={name: tuple(each) for name, each in lists.items()})
    raise InvalidDescription(validate(whole))


async def find(tx: Transaction, owner: str, submits: Sequence[Submit]) -> Parts:
    """Return the parts that these submissions name, those that no submission has used yet."""
    named = [part for submit in submits for lists in submit.lists for part in lists.parts]
    if not named:
        return {}
    found: Parts = {}
    for command_id, taken in (await submission.taken(tx, owner, named)).items():
        try:
            found[command_id] = msgspec.json.decode(taken.answer, type=Part)
        except msgspec.ValidationError:
            continue
    unused = await sweep.unused(tx, [each.kept for each in found.values()])
    return {command_id: part for command_id, part in found.items() if part.kept in unused}


def joined(parts: Parts, lists: LongLists, description: JobDescription) -> tuple[Part, ...]:
    """Return the parts of one description, or raise what is wrong with them."""
    missing = [each for each in lists.parts if each not in parts]
    if missing or len(set(lists.parts)) < len(lists.parts):
        raise Rejected(
            "LISTS_MISSING",
            f"of the {len(lists.parts):,} parts of its lists {len(missing):,} never came or were used already",
            "submit it again under another id",
        )
    mine = tuple(parts[each] for each in lists.parts)
    count = sum(each.count for each in mine)
    uneven = any(each.count % sweep.CHUNK for each in mine[:-1])
    names = {frozenset(each.extremes) for each in mine}
    if uneven or len(names) != 1 or count != description.array or description.parameters:
        raise Rejected(
            "LISTS_UNEQUAL",
            f"the parts of its lists have values for {count:,} jobs, and it is an array of {description.array or 0:,}",
            "all parts but the last have whole thousands, and all have the same names",
        )
    if problems := validate(_with_extremes(description, mine)):
        raise InvalidDescription(problems)
    return mine


def _with_extremes(description: JobDescription, parts: Sequence[Part]) -> JobDescription:
    """Return a small description that is as wrong as the whole one."""
    lists = {
        name: tuple(value for each in parts for value in each.extremes[name]) for name in parts[0].extremes
    }
    return msgspec.structs.replace(description, array=None, parameters=_even(lists))


def _even(lists: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return lists of one length, the shorter ones filled with what they have."""
    longest = max(map(len, lists.values()))
    return {name: (*values, *[values[0]] * (longest - len(values))) for name, values in lists.items()}
