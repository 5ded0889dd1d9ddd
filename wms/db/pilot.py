"""Pilots in the database: about to be sent, sent, seen, ended."""

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
    """Seconds since it was written down, by the database's clock."""
    silent: float | None
    """Seconds since it last spoke; None of one that never did."""
    unheard: float | None = None
    """The same; of one that never spoke since its element said that it runs."""


class Supply(msgspec.Struct, frozen=True, kw_only=True):
    """Pilots that have not ended and offer the same, as far as anybody asks for it."""

    site: str
    ce: str
    vo: str
    state: str
    slots: int
    busy: int
    resource: str
    """As they were sent, JSON; empty if nobody said."""
    asks: str
    unfit: list[str]
    free_memory_mb: int | None
    silent: bool
    """Not heard of for longer than between several of its reports."""
    owner_group: str
    """Of private pilots, whose jobs they take."""
    lasts: int
    """How many of the times that were asked after each has left, the shortest counted first."""
    pilots: int
    worked: int
    """Those of them that have had work."""


class EndedPilot(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot that has ended, and where."""

    pilot_id: PilotId
    site: str
    ce: str
    dispatcher: str
    age: float
    """Seconds since its end."""
    lost: bool
    """Nobody saw it end: it may work on where its element cannot see it."""


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot that an element lists as alive and that should be gone."""

    pilot_id: PilotId
    site: str
    ce: str
    """Both empty if nobody knows of it any more."""
    age: float | None
    """Seconds since its end; None if nobody knows of it any more."""


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
    """The class of hosts that it asks for."""
    owner_group: str = ""
    """Of a private pilot whose jobs it takes; empty: any group's of its VO."""
    owner: str = ""
    """And there whose; empty: all of the group's, which shares them."""
    order_id: int | None = None
    """For which order of a user's it is sent."""
    resource: Resource | None = None
    """What it is to offer."""


class PilotReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a pilot said of itself."""

    pilot_id: PilotId
    state: str
    slots: int
    busy: int
    done: int
    reason: str
    free_memory_mb: int | None = None
    """What it has left for jobs; None: it did not say."""
    refused_orders: int = 0
    """Messages to it that no service had signed."""
    token_until: datetime | None = None
    """When the token ends with which it spoke."""


class PilotAllowance(msgspec.Struct, frozen=True, kw_only=True):
    """What a pilot may still be given."""

    slots: int
    """With which it was sent."""
    done: int
    offered: int
    """Jobs that it was offered and has not accepted."""
    leases: int
    """Jobs that it was offered or has."""
    ended: bool
    """Seen to end; one that was only lost from sight may work on."""


class TokenDue(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot that lives and whose token ends before long, or has ended."""

    pilot_id: PilotId
    site: str
    ce: str
    vo: str
    owner_group: str = ""
    owner: str = ""


class Followed(msgspec.Struct, frozen=True, kw_only=True):
    """What its dispatcher says of a pilot."""

    pilot_id: PilotId
    state: str
    reference: str | None = None
    reason: str = ""
    cause: Code | None = None
    """What became of it, if it did not end by itself."""


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a pilot that does not renew its leases."""

    pilot_id: PilotId
    site: str
    ce: str
    dispatcher: str
    state: str
    ended: bool
    seen_at: datetime | None
    """When it last spoke itself."""
    word: str | None
    """What its element said of it last, and when."""
    word_at: datetime | None
    cause: str | None


async def seen(tx: Transaction, pilots: Sequence[PilotReport]) -> None:
    """Write what pilots said; each at most once. One that was lost from sight, and speaks, is back."""
    if pilots:
        await tx.execute(SQL["seen"], *dense(map(msgspec.structs.astuple, pilots)))


async def insert(tx: Transaction, pilots: Sequence[NewPilot], token_seconds: float | None = None) -> None:
    """Write down pilots before they are sent, with tokens that are good for so long."""
    if pilots:
        await tx.execute(SQL["insert"], *dense(map(_inserted, pilots)), token_seconds)


def _inserted(sent: NewPilot) -> tuple[object, ...]:
    offers = msgspec.json.encode(sent.resource).decode() if sent.resource else ""
    return (*msgspec.structs.astuple(sent)[:-1], offers)


async def update(tx: Transaction, pilots: Sequence[Followed]) -> None:
    """Write what the dispatcher says of pilots."""
    if pilots:
        await tx.execute(SQL["update"], *dense(map(msgspec.structs.astuple, pilots)))


async def standings(tx: Transaction, pilot_ids: Sequence[PilotId] | None) -> dict[PilotId, PilotAllowance]:
    """Return what is known of these pilots; None: of all that live, but for what they were offered."""
    if pilot_ids is None:
        rows = await tx.fetch(SQL["living"])
    else:
        rows = await tx.fetch(SQL["standings"], pilot_ids)
    return {PilotId(pilot_id): PilotAllowance(**row) for pilot_id, row in map(_keyed, rows)}


def _keyed(row: asyncpg.Record) -> tuple[str, dict[str, Any]]:
    said = dict(row)
    return said.pop("pilot_id"), said


async def tokens_due(tx: Transaction, *, within: float, pause: float, limit: int) -> list[TokenDue]:
    """Return pilots that live and whose tokens end within so many seconds, and that were sent none for `pause` seconds."""
    return [TokenDue(**row) for row in await tx.fetch(SQL["tokens_due"], within, pause, limit)]


async def tokens_sent(tx: Transaction, pilot_ids: Sequence[PilotId]) -> None:
    """Note that these pilots were sent new tokens: others get theirs first, should there be many."""
    if pilot_ids:
        await tx.execute(SQL["tokens_sent"], pilot_ids)


async def may_plan(tx: Transaction) -> bool:
    """Return whether nobody else plans pilots now; holds until the transaction ends."""
    alone: bool = await tx.fetchval(SQL["may_plan"])
    return alone


LAST_BREATH_SECONDS = 5.0
"""Between a pilot's end and its jobs being given to others: its shepherd kills their payloads in far less."""


async def hurry_leases(tx: Transaction, pilot_ids: Sequence[PilotId]) -> None:
    """End soon what these pilots hold: they were seen to end. Of one lost from sight the leases run their time."""
    if pilot_ids:
        await tx.execute(SQL["hurry_leases"], pilot_ids, LAST_BREATH_SECONDS)


async def unfit(tx: Transaction, found: Mapping[PilotId, Collection[str]]) -> None:
    """Remember what pilots found their nodes not to do for, by `wms.matching.node_facts.wish`."""
    if found:
        pairs = sorted({(pilot_id, wish) for pilot_id, wishes in found.items() for wish in wishes})
        await tx.execute(SQL["unfit"], *dense(pairs))


async def supply(
    tx: Transaction, asked: Sequence[int], *, idle_silent: float, busy_silent: float
) -> list[Supply]:
    """Return the pilots that have not ended by what they offer; `asked` are times in seconds that jobs ask for, rising.

    One that has no jobs is silent after `idle_silent` seconds without a word, one that has after `busy_silent`.
    """
    return [Supply(**row) for row in await tx.fetch(SQL["supply"], asked, idle_silent, busy_silent)]


async def private(tx: Transaction) -> dict[tuple[str, str, str], int]:
    """Return how many private pilots have not ended, by VO, group and owner, which is empty of those of a whole group."""
    rows = await tx.fetch(SQL["private"])
    return {(row["vo"], row["owner_group"], row["owner"]): row["pilots"] for row in rows}


async def alive(tx: Transaction) -> list[LivePilot]:
    """Return the pilots that have not ended, oldest first."""
    return [LivePilot(**row) for row in await tx.fetch(SQL["alive"])]


async def unfetched(tx: Transaction, *, within: float, since: float, limit: int) -> list[EndedPilot]:
    """Return pilots that ended `since` to `within` seconds ago and whose output was not asked for yet, oldest first."""
    return [EndedPilot(**row) for row in await tx.fetch(SQL["unfetched"], within, since, limit)]


async def mark(tx: Transaction) -> str:
    """Return this system's mark in the names of its pilots."""
    found: str = await tx.fetchval(SQL["mark"])
    return found


def prefix(mark: str) -> str:
    """Return how the names of a system's pilots begin."""
    return f"p-{mark}-"


def new_id(mark: str) -> PilotId:
    """Return a name for a pilot that no other has or had."""
    return PilotId(f"{prefix(mark)}{uuid.uuid4().hex[:16]}")


async def over(tx: Transaction, pilot_ids: Sequence[PilotId]) -> list[Listed]:
    """Return those of the pilots that have ended, or that nobody knows of, and that hold no lease."""
    return [Listed(**row) for row in await tx.fetch(SQL["over"], pilot_ids)]


async def keep_outputs(tx: Transaction, outputs: Mapping[PilotId, str]) -> None:
    """Keep what pilots printed; an empty text says that there was nothing."""
    if outputs:
        # Postgres keeps no NUL in a text.
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
    """Return a pilot whole, with what it printed."""
    return await tx.fetchrow(SQL["one"], pilot_id)


async def listed(
    tx: Transaction, after: int, limit: int, *, vo: str | None, ended: bool
) -> list[asyncpg.Record]:
    """Return pilots for people to look at, of one VO or of all: at most so many after the first `after`."""
    return await tx.fetch(SQL["all"], after, limit, ended, vo)


async def forget(tx: Transaction, age: float, limit: int) -> int:
    """Forget some pilots that ended so many seconds ago; return how many."""
    return await tx.execute(SQL["forget"], age, limit)
