"""Pilots in the database, from before they are sent until after their end."""

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
    """One pilot that has not ended."""

    pilot_id: PilotId
    site: str
    ce: str
    vo: str
    dispatcher: str
    reference: str | None
    state: str
    slots: int
    busy: int
    submitted_at: datetime
    seen_at: datetime | None
    reason: str
    age: float
    """Seconds since it was stored, by the database's clock."""
    silent: float | None
    """Seconds since its last message; None if it never sent one."""
    unheard: float | None = None
    """The same; for one that never sent a message, since its element reported it as running."""


class Supply(msgspec.Struct, frozen=True, kw_only=True):
    """Live pilots with equal offers, as far as any work distinguishes them."""

    site: str
    ce: str
    vo: str
    state: str
    slots: int
    busy: int
    resource: str
    """The resource that they were sent with, as JSON; empty if none was stored."""
    asks: str
    unfit: list[str]
    free_memory_mb: int | None
    silent: bool
    """Whether they were silent for longer than several report intervals."""
    owner_group: str
    """The owner group of private pilots."""
    lasts: int
    """How many of the requested times each of them still has, counted from the shortest."""
    pilots: int
    worked: int
    """Those of them that have had a job."""


class EndedPilot(msgspec.Struct, frozen=True, kw_only=True):
    """An ended pilot and its element."""

    pilot_id: PilotId
    site: str
    ce: str
    dispatcher: str
    age: float
    """Seconds since its end."""
    lost: bool
    """Whether nobody saw it end: it may work on where its element cannot see it."""


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A stray pilot: its element lists it as alive and it should be gone."""

    pilot_id: PilotId
    site: str
    ce: str
    """Site and CE are empty if the pilot is unknown."""
    age: float | None
    """Seconds since its end; None if the pilot is unknown."""


class NewPilot(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot that is about to be sent."""

    pilot_id: PilotId
    site: str
    ce: str
    vo: str
    dispatcher: str
    slots: int
    reason: str = ""
    lifetime_seconds: float | None = None
    asks: str = ""
    """The name of its pilot class."""
    owner_group: str = ""
    """The group whose jobs a private pilot takes; empty: any group's of its VO."""
    owner: str = ""
    """The owner in that group whose jobs it takes; empty: all members', who share them."""
    order_id: int | None = None
    """The user's order for which it is sent."""
    resource: Resource | None = None
    """The resource that it is expected to offer."""


class PilotReport(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot's report on itself."""

    pilot_id: PilotId
    state: str
    slots: int
    busy: int
    done: int
    reason: str
    free_memory_mb: int | None = None
    """The memory that it has left for jobs; None: not reported."""
    refused_orders: int = 0
    """Messages to it without a service's signature."""
    token_until: datetime | None = None
    """The end of the token that it used."""


class PilotAllowance(msgspec.Struct, frozen=True, kw_only=True):
    """How many more jobs a pilot may be offered."""

    slots: int
    """The slots that it was sent with."""
    done: int
    offered: int
    """Jobs that it was offered and has not accepted."""
    leases: int
    """Jobs that it was offered or has."""
    ended: bool
    """Whether it was seen to end; one that was lost from sight may work on."""


class TokenDue(msgspec.Struct, frozen=True, kw_only=True):
    """A live pilot whose token ends soon or has ended."""

    pilot_id: PilotId
    site: str
    ce: str
    vo: str
    owner_group: str = ""
    owner: str = ""


class Followed(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a pilot by its dispatcher."""

    pilot_id: PilotId
    state: str
    reference: str | None = None
    reason: str = ""
    cause: Code | None = None
    """The cause of its end, if it did not end by itself."""


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a pilot that does not renew its leases."""

    pilot_id: PilotId
    site: str
    ce: str
    dispatcher: str
    state: str
    ended: bool
    seen_at: datetime | None
    """The time of its last message."""
    word: str | None
    """Its element's last report on it, with the time."""
    word_at: datetime | None
    cause: str | None


async def seen(tx: Transaction, pilots: Sequence[PilotReport]) -> None:
    """Store reports, at most one for each pilot. A pilot that was lost from sight and reports is alive again."""
    if pilots:
        await tx.execute(SQL["seen"], *dense(map(msgspec.structs.astuple, pilots)))


async def insert(tx: Transaction, pilots: Sequence[NewPilot], token_seconds: float | None = None) -> None:
    """Store pilots before they are sent, with the lifetime of their tokens."""
    if pilots:
        await tx.execute(SQL["insert"], *dense(map(_inserted, pilots)), token_seconds)


def _inserted(sent: NewPilot) -> tuple[object, ...]:
    offers = msgspec.json.encode(sent.resource).decode() if sent.resource else ""
    return (*msgspec.structs.astuple(sent)[:-1], offers)


async def update(tx: Transaction, pilots: Sequence[Followed]) -> None:
    """Store the states of pilots by the dispatcher."""
    if pilots:
        await tx.execute(SQL["update"], *dense(map(msgspec.structs.astuple, pilots)))


async def standings(tx: Transaction, pilot_ids: Sequence[PilotId] | None) -> dict[PilotId, PilotAllowance]:
    """Return the allowances of these pilots; None: of all live ones, without the offers."""
    if pilot_ids is None:
        rows = await tx.fetch(SQL["living"])
    else:
        rows = await tx.fetch(SQL["standings"], pilot_ids)
    return {PilotId(pilot_id): PilotAllowance(**row) for pilot_id, row in map(_keyed, rows)}


def _keyed(row: asyncpg.Record) -> tuple[str, dict[str, Any]]:
    said = dict(row)
    return said.pop("pilot_id"), said


async def tokens_due(tx: Transaction, *, within: float, pause: float, limit: int) -> list[TokenDue]:
    """Return live pilots whose tokens end within so many seconds, and that got none for `pause` seconds."""
    return [TokenDue(**row) for row in await tx.fetch(SQL["tokens_due"], within, pause, limit)]


async def tokens_sent(tx: Transaction, pilot_ids: Sequence[PilotId]) -> None:
    """Note that these pilots were sent new tokens, so that others are served first."""
    if pilot_ids:
        await tx.execute(SQL["tokens_sent"], pilot_ids)


async def may_plan(tx: Transaction) -> bool:
    """Lock the planning of pilots until the transaction ends; return False if another has the lock."""
    alone: bool = await tx.fetchval(SQL["may_plan"])
    return alone


LAST_BREATH_SECONDS = 5.0
"""Seconds between a pilot's end and giving its jobs to others: its shepherd kills their payloads in far less."""


async def hurry_leases(tx: Transaction, pilot_ids: Sequence[PilotId]) -> None:
    """Let the leases of these pilots end soon, as they were seen to end. The leases of a lost pilot run their time."""
    if pilot_ids:
        await tx.execute(SQL["hurry_leases"], pilot_ids, LAST_BREATH_SECONDS)


async def unfit(tx: Transaction, found: Mapping[PilotId, Collection[str]]) -> None:
    """Store the requirements that pilots found their nodes unfit for, by `wms.matching.node_facts.wish`."""
    if found:
        pairs = sorted({(pilot_id, wish) for pilot_id, wishes in found.items() for wish in wishes})
        await tx.execute(SQL["unfit"], *dense(pairs))


async def supply(
    tx: Transaction, asked: Sequence[int], *, idle_silent: float, busy_silent: float
) -> list[Supply]:
    """Return live pilots grouped by their offers; `asked` are the times in seconds that jobs ask for, ascending.

    One without jobs is silent after `idle_silent` seconds without a message, one with jobs after `busy_silent`.
    """
    return [Supply(**row) for row in await tx.fetch(SQL["supply"], asked, idle_silent, busy_silent)]


async def private(tx: Transaction) -> dict[tuple[str, str, str], int]:
    """Return the number of live private pilots by VO, group and owner; the owner is empty for pilots of a whole group."""
    rows = await tx.fetch(SQL["private"])
    return {(row["vo"], row["owner_group"], row["owner"]): row["pilots"] for row in rows}


async def alive(tx: Transaction) -> list[LivePilot]:
    """Return the pilots that have not ended, oldest first."""
    return [LivePilot(**row) for row in await tx.fetch(SQL["alive"])]


async def unfetched(tx: Transaction, *, within: float, since: float, limit: int) -> list[EndedPilot]:
    """Return pilots that ended `since` to `within` seconds ago and whose output was not fetched yet, oldest first."""
    return [EndedPilot(**row) for row in await tx.fetch(SQL["unfetched"], within, since, limit)]


async def mark(tx: Transaction) -> str:
    """Return this system's mark in the names of its pilots."""
    found: str = await tx.fetchval(SQL["mark"])
    return found


def prefix(mark: str) -> str:
    """Return the prefix of the names of a system's pilots."""
    return f"p-{mark}-"


def new_id(mark: str) -> PilotId:
    """Return a name for a pilot that no other has or had."""
    return PilotId(f"{prefix(mark)}{uuid.uuid4().hex[:16]}")


async def over(tx: Transaction, pilot_ids: Sequence[PilotId]) -> list[Listed]:
    """Return those of the pilots that have ended or are unknown, and hold no lease."""
    return [Listed(**row) for row in await tx.fetch(SQL["over"], pilot_ids)]


async def keep_outputs(tx: Transaction, outputs: Mapping[PilotId, str]) -> None:
    """Store the outputs of pilots; an empty text means that there was none."""
    if outputs:
        # Postgres stores no NUL in a text.
        texts = [text.replace("\0", "") for text in outputs.values()]
        await tx.execute(SQL["keep_outputs"], list(outputs), texts)


async def fates(tx: Transaction, pilot_ids: Collection[PilotId]) -> dict[PilotId, Fate]:
    """Return what is known of pilots."""
    if not pilot_ids:
        return {}
    return {row["pilot_id"]: Fate(**row) for row in await tx.fetch(SQL["fates"], sorted(pilot_ids))}


async def of_job(tx: Transaction, job_id: JobId) -> list[asyncpg.Record]:
    """Return the pilots that a job was given to, in order."""
    return await tx.fetch(SQL["of_job"], job_id)


async def one(tx: Transaction, pilot_id: PilotId) -> asyncpg.Record | None:
    """Return all of a pilot, with its output."""
    return await tx.fetchrow(SQL["one"], pilot_id)


async def listed(
    tx: Transaction, after: int, limit: int, *, vo: str | None, ended: bool
) -> list[asyncpg.Record]:
    """Return pilots, of one VO or of all, for people to look at: at most so many after the first `after`."""
    return await tx.fetch(SQL["all"], after, limit, ended, vo)


async def forget(tx: Transaction, age: float, limit: int) -> int:
    """Delete some pilots that ended so many seconds ago; return how many."""
    return await tx.execute(SQL["forget"], age, limit)
