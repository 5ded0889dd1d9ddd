"""Pilots in the database, from just before they are sent: place-holder jobs at computing elements that ask for users' jobs."""

import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias

import asyncpg
import msgspec

from wms.db.columns import dense
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import JobId, PilotId
from wms.job.reasons import Code
from wms.site import Resource

SQL = load(__file__)

Link: TypeAlias = Literal["kafka", "gateway"]


class LivePilot(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot that has not ended, with where it was sent and what it last reported."""

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
    """How many of the pilot's slots are in use."""
    submitted_at: datetime
    seen_at: datetime | None
    """The time of the pilot's last message; None if it never sent one."""
    reason: str
    age: float
    """Seconds since the pilot was stored, just before it was sent."""
    silent: float | None
    """Seconds since the pilot's last message; None if it never sent one."""
    cancelled: bool = False
    """Whether this service has cancelled the pilot."""
    unheard: float | None = None
    """Seconds since the pilot's last message. If it never sent one, seconds since its computing element last reported that it runs."""


class EqualPilots(msgspec.Struct, frozen=True, kw_only=True):
    """A group of live pilots that are equal in all that decides which jobs they could take."""

    site: str
    ce: str
    vo: str
    state: str
    slots: int
    busy: int
    resource: str
    """What the pilots were expected to offer when they were sent, as JSON; empty if that is unknown."""
    asks: str
    """The name of the pilot class: which kind of host the pilots asked for."""
    idle_node: str
    """The attributes of these pilots' nodes, as JSON; empty if they are unknown, or if the pilots have no free slots."""
    free_memory_mb: int | None
    """The memory in MB that the pilots have left for jobs; None if they did not report it."""
    silent: bool
    """Whether the pilots have sent no message for the time that was given to `supply`."""
    owner_group: str
    """The group whose jobs alone these private pilots take; empty for pilots that take any."""
    lasts: int
    """How many of the times in `asked` (argument of `supply`), from the shortest on, are within the pilots' remaining lifetime."""
    pilots: int
    """How many pilots are in the group."""
    worked: int
    """How many of these pilots have had a job."""


class EndedPilot(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot that has ended, and the computing element where it ran."""

    pilot_id: PilotId
    site: str
    ce: str
    dispatcher: str
    age: float
    """Seconds since the pilot's end."""
    lost: bool
    """Whether the pilot counts as ended only because its computing element lost contact with it. It may still work."""


class ListedStray(msgspec.Struct, frozen=True, kw_only=True):
    """A stray pilot: its computing element lists it as alive, though it has ended or is unknown here."""

    pilot_id: PilotId
    site: str
    """The pilot's site; empty if the pilot is unknown."""
    ce: str
    """The pilot's computing element; empty if the pilot is unknown."""
    age: float | None
    """Seconds since the pilot's end; None if the pilot is unknown."""


class NewPilot(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot that is about to be sent, to be stored by `insert`."""

    pilot_id: PilotId
    site: str
    ce: str
    vo: str
    dispatcher: str
    slots: int
    reason: str = ""
    """Why the planner sends the pilot, in a sentence for people."""
    lifetime_seconds: float | None = None
    """The pilot's lifetime in seconds; None if it is not limited."""
    asks: str = ""
    """The name of the pilot class: which kind of host the pilot asks its computing element for."""
    owner_group: str = ""
    """The group whose jobs alone a private pilot takes; empty: any group of its VO."""
    owner: str = ""
    """The user whose jobs alone a private pilot takes; empty: all members of the group."""
    order_id: int | None = None
    """The number of the user's order for private pilots that the pilot is part of; None without an order."""
    job_id: JobId | None = None
    """The one job that the pilot may be given; None for any that fits."""
    link: Link = "kafka"
    """How the pilot reaches the services: the Kafka broker itself, or a gateway."""
    resource: Resource | None = None
    """The resource that the pilot is expected to offer; None if it is unknown."""


class PilotReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a pilot reports of itself, to be stored by `seen`."""

    pilot_id: PilotId
    state: str
    slots: int
    busy: int
    done: int
    """How many jobs ended in the pilot since its last report."""
    reason: str
    free_memory_mb: int | None = None
    """The memory that the pilot has left for jobs, in MB; None if not reported."""
    refused_orders: int = 0
    """How many messages to the pilot it refused, as they lacked a valid signature of a service."""
    token_until: datetime | None = None
    """When the token that the pilot uses expires."""
    isolation: str = ""
    """How the pilot isolates payloads: `account`, `namespaces`, `none` or `direct`; empty if not reported."""
    node: str = ""
    """The attributes of the pilot's node for plans, as JSON; empty if not reported."""


class PilotAllowance(msgspec.Struct, frozen=True, kw_only=True):
    """The figures that limit how many more jobs one pilot may be offered."""

    slots: int
    """With how many slots the pilot was sent."""
    done: int
    """How many jobs have ended in the pilot."""
    offered: int
    """How many jobs are offered to the pilot and not yet accepted."""
    leases: int
    """How many jobs the pilot holds, offered or accepted."""
    ended: bool
    """Whether the pilot has certainly ended. False if its computing element only lost contact with it."""


class TokenDue(msgspec.Struct, frozen=True, kw_only=True):
    """A live pilot that needs a new token, as its token expires soon or has expired."""

    pilot_id: PilotId
    site: str
    ce: str
    vo: str
    owner_group: str = ""
    owner: str = ""
    job_id: JobId | None = None
    """The one job that the pilot may be given; None for any that fits."""


class Followed(msgspec.Struct, frozen=True, kw_only=True):
    """What the dispatcher, which sends pilots to a computing element, reports of the state of one pilot."""

    pilot_id: PilotId
    state: str
    reference: str | None = None
    """The batch system's name for the pilot; None to keep what is stored."""
    reason: str = ""
    cause: Code | None = None
    """The cause of the pilot's end; None if it has not ended or ended by itself."""


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a pilot that no longer renews the leases of its jobs: its own reports and those of its computing element."""

    pilot_id: PilotId
    site: str
    ce: str
    dispatcher: str
    state: str
    ended: bool
    seen_at: datetime | None
    """The time of the pilot's last message; None if it never sent one."""
    word: str | None
    """What the pilot's computing element last reported of it; None if it never did."""
    word_at: datetime | None
    """The time of the computing element's last report."""
    cause: str | None
    """The cause of the pilot's end; None if it has not ended or ended by itself."""


async def seen(tx: Transaction, pilots: Sequence[PilotReport]) -> None:
    """Store what pilots report of themselves, at most one report a pilot. One that counted as ended for lost contact is alive again."""
    if pilots:
        await tx.execute(SQL["seen"], *dense(map(msgspec.structs.astuple, pilots)))


async def insert(tx: Transaction, pilots: Sequence[NewPilot], token_seconds: float | None = None) -> None:
    """Store pilots before they are sent. Their tokens expire after `token_seconds` seconds; None: unknown.

    Pilots that reach a gateway have no token yet: they are sent with a secret (`wms.db.pilot_secret`).
    """
    if pilots:
        await tx.execute(SQL["insert"], *dense(map(_inserted, pilots)), token_seconds)


def _inserted(sent: NewPilot) -> tuple[object, ...]:
    offers = msgspec.json.encode(sent.resource).decode() if sent.resource else ""
    return (*msgspec.structs.astuple(sent)[:-1], offers)


async def update(tx: Transaction, pilots: Sequence[Followed]) -> None:
    """Store the states of pilots as their dispatcher reports them. A pilot that has ended stays ended."""
    if pilots:
        await tx.execute(SQL["update"], *dense(map(msgspec.structs.astuple, pilots)))


async def standings(tx: Transaction, pilot_ids: Sequence[PilotId] | None) -> dict[PilotId, PilotAllowance]:
    """Return the figures that limit further offers to these pilots, or to all live pilots if None.

    For all live pilots, offers and leases are not counted and are 0.
    """
    rows = await (tx.fetch(SQL["living"]) if pilot_ids is None else tx.fetch(SQL["standings"], pilot_ids))
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
    """Store that these pilots were sent new tokens now. `tokens_due` then returns others first."""
    if pilot_ids:
        await tx.execute(SQL["tokens_sent"], pilot_ids)


async def may_plan(tx: Transaction) -> bool:
    """Try to take the lock for planning pilots until the transaction ends. Return False if another transaction holds it."""
    alone: bool = await tx.fetchval(SQL["may_plan"])
    return alone


LAST_BREATH_SECONDS = 5.0
"""Seconds after a pilot's end until its leases expire and its jobs go to other pilots. Its payloads are killed in far less time."""


async def hurry_leases(tx: Transaction, pilot_ids: Sequence[PilotId]) -> None:
    """Shorten the leases of pilots that have ended: they expire in `LAST_BREATH_SECONDS` at most.

    Pilots with which their computing element only lost contact must not be given, as they may still work.
    """
    if pilot_ids:
        await tx.execute(SQL["hurry_leases"], pilot_ids, LAST_BREATH_SECONDS)


async def supply(
    tx: Transaction, asked: Sequence[int], *, idle_silent: float, busy_silent: float
) -> list[EqualPilots]:
    """Return the live pilots that are not tied to one job, in groups of equal pilots.

    `asked` are the run times that jobs request, in seconds, ascending. A pilot counts as silent after `idle_silent` seconds without a
    message, or after `busy_silent` seconds if it has jobs.
    """
    return [EqualPilots(**row) for row in await tx.fetch(SQL["supply"], asked, idle_silent, busy_silent)]


async def private(tx: Transaction) -> dict[tuple[str, str, str], int]:
    """Return the number of live private pilots by VO, group and owner ("" for a whole group), without those sent for one job."""
    rows = await tx.fetch(SQL["private"])
    return {(row["vo"], row["owner_group"], row["owner"]): row["pilots"] for row in rows}


async def alive(tx: Transaction) -> list[LivePilot]:
    """Return the pilots of all sites that have not ended, the first sent first."""
    return [LivePilot(**row) for row in await tx.fetch(SQL["alive"])]


async def unfetched(tx: Transaction, *, within: float, since: float, limit: int) -> list[EndedPilot]:
    """Return up to `limit` pilots that ended `since` to `within` seconds ago and whose output was not fetched yet, the first ended first."""
    return [EndedPilot(**row) for row in await tx.fetch(SQL["unfetched"], within, since, limit)]


async def mark(tx: Transaction) -> str:
    """Return the mark of this installation: a short text that the names of all its pilots contain."""
    return str(await tx.fetchval(SQL["mark"]))


def prefix(mark: str) -> str:
    """Return the text with which all pilot names of an installation begin. `mark` is the installation's mark, from the function `mark`."""
    return f"p-{mark}-"


def new_id(mark: str) -> PilotId:
    """Return a new, unique pilot name. `mark` is the installation's mark, from the function `mark`."""
    return PilotId(f"{prefix(mark)}{uuid.uuid4().hex[:16]}")


async def over(tx: Transaction, pilot_ids: Sequence[PilotId]) -> list[ListedStray]:
    """Return those of these pilots that have ended or are unknown here, and hold no lease. Their computing elements list them as alive."""
    return [ListedStray(**row) for row in await tx.fetch(SQL["over"], pilot_ids)]


class UnboundPilot(msgspec.Struct, frozen=True, kw_only=True):
    """A live pilot that was sent for one job and has that job no more, so that it is to be cancelled."""

    pilot_id: PilotId
    site: str
    ce: str
    dispatcher: str


async def unbound(tx: Transaction, *, since: float, limit: int) -> list[UnboundPilot]:
    """Return up to `limit` live pilots that were sent for one job, whose placement is closed, and that hold no job.

    A pilot whose placement ended after running is returned only `since` seconds after that, as it should end by itself.
    """
    return [UnboundPilot(**row) for row in await tx.fetch(SQL["unbound"], since, limit)]


async def cancelled(tx: Transaction, pilot_ids: Collection[PilotId]) -> None:
    """Store that these pilots are being cancelled, so that their ends count against no element."""
    await tx.execute(SQL["cancelled"], sorted(pilot_ids))


async def keep_outputs(tx: Transaction, outputs: Mapping[PilotId, str]) -> None:
    """Store the output of ended pilots, by pilot name. An empty text means that there was none."""
    if outputs:
        # Postgres stores no NUL in a text.
        texts = [text.replace("\0", "") for text in outputs.values()]
        await tx.execute(SQL["keep_outputs"], list(outputs), texts)


async def fates(tx: Transaction, pilot_ids: Collection[PilotId]) -> dict[PilotId, Fate]:
    """Return the last reports by and on these pilots, which no longer renew leases, by pilot. Pilots that are not stored are absent."""
    if not pilot_ids:
        return {}
    return {row["pilot_id"]: Fate(**row) for row in await tx.fetch(SQL["fates"], sorted(pilot_ids))}


async def of_job(tx: Transaction, job_id: JobId) -> list[asyncpg.Record]:
    """Return the rows of the pilots to which a job was ever given, in the order in which they were sent."""
    return await tx.fetch(SQL["of_job"], job_id)


async def one(tx: Transaction, pilot_id: PilotId) -> asyncpg.Record | None:
    """Return the row of a pilot, its output included; None if it is unknown."""
    return await tx.fetchrow(SQL["one"], pilot_id)


async def listed(
    tx: Transaction, after: int, limit: int, *, vo: str | None, ended: bool
) -> list[asyncpg.Record]:
    """Return the rows of up to `limit` pilots for a list, after the first `after` ones: live ones first, newest first.

    `vo` None means all VOs. Ended pilots are included if `ended` is set.
    """
    return await tx.fetch(SQL["all"], after, limit, ended, vo)


async def forget(tx: Transaction, age: float, limit: int) -> int:
    """Delete up to `limit` pilots that ended more than `age` seconds ago; return the number of deleted pilots."""
    return await tx.execute(SQL["forget"], age, limit)
