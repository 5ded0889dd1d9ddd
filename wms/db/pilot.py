"""Pilots in the database, from just before they are sent until some time after their end."""

import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import asyncpg
import msgspec

from wms.db.columns import dense
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import JobId, PilotId
from wms.job.reasons import Code
from wms.site import Resource

SQL = load(__file__)


class LivePilot(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot that has not ended."""

    pilot_id: PilotId
    site: str
    ce: str
    vo: str
    dispatcher: str
    reference: str | None
    """The batch system's name for the pilot; None if it is not known yet."""
    state: str
    slots: int
    busy: int
    """The number of slots in use."""
    submitted_at: datetime
    seen_at: datetime | None
    """The time of the pilot's last message; None if it never sent one."""
    reason: str
    age: float
    """Seconds since the pilot was stored, by the database's clock."""
    silent: float | None
    """Seconds since the pilot's last message; None if it never sent one."""
    unheard: float | None = None
    """Seconds since the pilot's last message. If it never sent one, seconds since the last report of its element that it runs."""


class Supply(msgspec.Struct, frozen=True, kw_only=True):
    """A group of live pilots whose offers are equal for every job."""

    site: str
    ce: str
    vo: str
    state: str
    slots: int
    busy: int
    resource: str
    """The resource expected when the pilots were sent, as JSON; empty if none was stored."""
    asks: str
    """The name of the pilot class."""
    unfit: list[str]
    """The requirements for which the pilots found their nodes unfit."""
    free_memory_mb: int | None
    """The memory left for jobs in MB; None if it was not reported."""
    silent: bool
    """Whether the pilots have sent no message for longer than the limit given to `supply`."""
    owner_group: str
    """The owner group of private pilots; empty for other pilots."""
    lasts: int
    """The number of the times in `asked`, counted from the shortest, for which the pilots still live long enough."""
    pilots: int
    """The number of pilots in the group."""
    worked: int
    """The number of pilots in the group that have had a job."""


class EndedPilot(msgspec.Struct, frozen=True, kw_only=True):
    """An ended pilot and the computing element where it ran."""

    pilot_id: PilotId
    site: str
    ce: str
    dispatcher: str
    age: float
    """Seconds since the pilot's end."""
    lost: bool
    """Whether the pilot was only lost from sight, so that it may still work where its element cannot see it."""


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A stray pilot: its element lists it as alive, but it should have gone."""

    pilot_id: PilotId
    site: str
    """The pilot's site; empty if the pilot is unknown."""
    ce: str
    """The pilot's computing element; empty if the pilot is unknown."""
    age: float | None
    """Seconds since the pilot's end; None if the pilot is unknown."""


class NewPilot(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot that is about to be sent."""

    pilot_id: PilotId
    site: str
    ce: str
    vo: str
    dispatcher: str
    slots: int
    reason: str = ""
    """The planner's reason to send the pilot, for people."""
    lifetime_seconds: float | None = None
    """The pilot's lifetime in seconds; None if it is not limited."""
    asks: str = ""
    """The name of the pilot class."""
    owner_group: str = ""
    """The group whose jobs a private pilot takes; empty: any group of its VO."""
    owner: str = ""
    """The owner whose jobs a private pilot takes; empty: all members of the group."""
    order_id: int | None = None
    """The number of the user's order for which the pilot is sent; None without an order."""
    job_id: JobId | None = None
    """The one job that the pilot may be given; None for any that fits."""
    resource: Resource | None = None
    """The resource that the pilot is expected to offer; None if it is unknown."""


class PilotReport(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot's report on itself."""

    pilot_id: PilotId
    state: str
    slots: int
    busy: int
    done: int
    """The number of jobs that ended since the pilot's last report."""
    reason: str
    free_memory_mb: int | None = None
    """The memory that the pilot has left for jobs, in MB; None if not reported."""
    refused_orders: int = 0
    """The number of messages to the pilot that lacked a valid signature of a service."""
    token_until: datetime | None = None
    """The expiry time of the token that the pilot used."""


class PilotAllowance(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers that limit how many more jobs a pilot may be offered."""

    slots: int
    """The number of slots with which the pilot was sent."""
    done: int
    """The number of the pilot's jobs that have ended."""
    offered: int
    """The number of jobs offered to the pilot and not yet accepted."""
    leases: int
    """The number of jobs that the pilot was offered or runs."""
    ended: bool
    """Whether the pilot has certainly ended. A pilot that was only lost from sight may still work."""


class TokenDue(msgspec.Struct, frozen=True, kw_only=True):
    """A live pilot whose token expires soon or has expired."""

    pilot_id: PilotId
    site: str
    ce: str
    vo: str
    owner_group: str = ""
    owner: str = ""
    job_id: JobId | None = None
    """The one job that the pilot may be given; None for any that fits."""


class Followed(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a pilot as reported by its dispatcher."""

    pilot_id: PilotId
    state: str
    reference: str | None = None
    """The batch system's name for the pilot; None if it is not new."""
    reason: str = ""
    cause: Code | None = None
    """The cause of the pilot's end; None if it has not ended or ended by itself."""


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """The known facts about a pilot that no longer renews its leases."""

    pilot_id: PilotId
    site: str
    ce: str
    dispatcher: str
    state: str
    ended: bool
    seen_at: datetime | None
    """The time of the pilot's last message; None if it never sent one."""
    word: str | None
    """The last report of the pilot's element on it; None without a report."""
    word_at: datetime | None
    """The time of the element's last report."""
    cause: str | None
    """The cause of the pilot's end; None if it has not ended or ended by itself."""


async def seen(tx: Transaction, pilots: Sequence[PilotReport]) -> None:
    """Store reports, at most one for each pilot. A pilot that was only lost from sight is alive again after its report."""
    if pilots:
        await tx.execute(SQL["seen"], *dense(map(msgspec.structs.astuple, pilots)))


async def insert(tx: Transaction, pilots: Sequence[NewPilot], token_seconds: float | None = None) -> None:
    """Store pilots before they are sent, with the lifetime of their tokens in seconds."""
    if pilots:
        await tx.execute(SQL["insert"], *dense(map(_inserted, pilots)), token_seconds)


def _inserted(sent: NewPilot) -> tuple[object, ...]:
    offers = msgspec.json.encode(sent.resource).decode() if sent.resource else ""
    return (*msgspec.structs.astuple(sent)[:-1], offers)


async def update(tx: Transaction, pilots: Sequence[Followed]) -> None:
    """Store the states of pilots as reported by their dispatcher. A pilot that has ended stays ended."""
    if pilots:
        await tx.execute(SQL["update"], *dense(map(msgspec.structs.astuple, pilots)))


async def standings(tx: Transaction, pilot_ids: Sequence[PilotId] | None) -> dict[PilotId, PilotAllowance]:
    """Return the allowances of these pilots, or of all live pilots if None.

    For all live pilots offers and leases are not counted: they are 0.
    """
    if pilot_ids is None:
        rows = await tx.fetch(SQL["living"])
    else:
        rows = await tx.fetch(SQL["standings"], pilot_ids)
    return {PilotId(pilot_id): PilotAllowance(**row) for pilot_id, row in map(_keyed, rows)}


def _keyed(row: asyncpg.Record) -> tuple[str, dict[str, Any]]:
    said = dict(row)
    return said.pop("pilot_id"), said


async def tokens_due(tx: Transaction, *, within: float, pause: float, limit: int) -> list[TokenDue]:
    """Return up to `limit` live pilots whose tokens expire within `within` seconds.

    Pilots that were sent a token during the last `pause` seconds are left out.
    """
    return [TokenDue(**row) for row in await tx.fetch(SQL["tokens_due"], within, pause, limit)]


async def tokens_sent(tx: Transaction, pilot_ids: Sequence[PilotId]) -> None:
    """Store that these pilots were sent new tokens now. `tokens_due` then returns other pilots first."""
    if pilot_ids:
        await tx.execute(SQL["tokens_sent"], pilot_ids)


async def may_plan(tx: Transaction) -> bool:
    """Take the lock for planning pilots until the transaction ends; return False if another transaction holds it."""
    alone: bool = await tx.fetchval(SQL["may_plan"])
    return alone


LAST_BREATH_SECONDS = 5.0
"""Seconds from a pilot's end until its jobs are given to other pilots. Its shepherd kills the payloads in far less."""


async def hurry_leases(tx: Transaction, pilot_ids: Sequence[PilotId]) -> None:
    """Let the leases of pilots that were seen to end expire soon. The leases of lost pilots keep their time."""
    if pilot_ids:
        await tx.execute(SQL["hurry_leases"], pilot_ids, LAST_BREATH_SECONDS)


async def unfit(tx: Transaction, found: Mapping[PilotId, Collection[str]]) -> None:
    """Add the requirements for which pilots found their nodes unfit, in the form of `wms.matching.node_facts.wish`."""
    if found:
        pairs = sorted({(pilot_id, wish) for pilot_id, wishes in found.items() for wish in wishes})
        await tx.execute(SQL["unfit"], *dense(pairs))


async def supply(
    tx: Transaction, asked: Sequence[int], *, idle_silent: float, busy_silent: float
) -> list[Supply]:
    """Return live pilots, grouped by their offers; `asked` are the times that jobs request, in seconds, ascending.

    A pilot without jobs is silent after `idle_silent` seconds without a message, a pilot with jobs after `busy_silent`.
    """
    return [Supply(**row) for row in await tx.fetch(SQL["supply"], asked, idle_silent, busy_silent)]


async def private(tx: Transaction) -> dict[tuple[str, str, str], int]:
    """Return the number of live private pilots by VO, group and owner. The owner is empty for pilots of a whole group."""
    rows = await tx.fetch(SQL["private"])
    return {(row["vo"], row["owner_group"], row["owner"]): row["pilots"] for row in rows}


async def alive(tx: Transaction) -> list[LivePilot]:
    """Return the pilots that have not ended, oldest first."""
    return [LivePilot(**row) for row in await tx.fetch(SQL["alive"])]


async def unfetched(tx: Transaction, *, within: float, since: float, limit: int) -> list[EndedPilot]:
    """Return up to `limit` pilots whose output was not fetched yet, oldest end first.

    Only pilots that ended at most `within` and at least `since` seconds ago are returned.
    """
    return [EndedPilot(**row) for row in await tx.fetch(SQL["unfetched"], within, since, limit)]


async def mark(tx: Transaction) -> str:
    """Return the text that identifies this system in the names of its pilots."""
    found: str = await tx.fetchval(SQL["mark"])
    return found


def prefix(mark: str) -> str:
    """Return the prefix of all pilot names of the system with this mark."""
    return f"p-{mark}-"


def new_id(mark: str) -> PilotId:
    """Return a new, unique pilot name for the system with this mark."""
    return PilotId(f"{prefix(mark)}{uuid.uuid4().hex[:16]}")


async def over(tx: Transaction, pilot_ids: Sequence[PilotId]) -> list[Listed]:
    """Return the given pilots that have ended or are unknown, and hold no lease."""
    return [Listed(**row) for row in await tx.fetch(SQL["over"], pilot_ids)]


class UnboundPilot(msgspec.Struct, frozen=True, kw_only=True):
    """A live pilot whose job it was sent for is its no more."""

    pilot_id: PilotId
    site: str
    ce: str
    dispatcher: str


async def unbound(tx: Transaction, *, since: float, limit: int) -> list[UnboundPilot]:
    """Return up to `limit` live pilots of closed placements; those that ran their job only `since` seconds after its end."""
    return [UnboundPilot(**row) for row in await tx.fetch(SQL["unbound"], since, limit)]


async def keep_outputs(tx: Transaction, outputs: Mapping[PilotId, str]) -> None:
    """Store the output of pilots by pilot name. An empty text means that there was no output."""
    if outputs:
        # Postgres stores no NUL in a text.
        texts = [text.replace("\0", "") for text in outputs.values()]
        await tx.execute(SQL["keep_outputs"], list(outputs), texts)


async def fates(tx: Transaction, pilot_ids: Collection[PilotId]) -> dict[PilotId, Fate]:
    """Return the known facts about these pilots; unknown pilots are absent."""
    if not pilot_ids:
        return {}
    return {row["pilot_id"]: Fate(**row) for row in await tx.fetch(SQL["fates"], sorted(pilot_ids))}


async def of_job(tx: Transaction, job_id: JobId) -> list[asyncpg.Record]:
    """Return the pilots to which a job was given, in the order in which they were sent."""
    return await tx.fetch(SQL["of_job"], job_id)


async def one(tx: Transaction, pilot_id: PilotId) -> asyncpg.Record | None:
    """Return all columns of a pilot, with its output; None if it is unknown."""
    return await tx.fetchrow(SQL["one"], pilot_id)


async def listed(
    tx: Transaction, after: int, limit: int, *, vo: str | None, ended: bool
) -> list[asyncpg.Record]:
    """Return up to `limit` pilots for a list, after the first `after`; live ones first, newest first.

    `vo` None means all VOs. Ended pilots are included if `ended` is true.
    """
    return await tx.fetch(SQL["all"], after, limit, ended, vo)


async def forget(tx: Transaction, age: float, limit: int) -> int:
    """Delete up to `limit` pilots that ended more than `age` seconds ago; return the number of deleted pilots."""
    return await tx.execute(SQL["forget"], age, limit)
