"""The health of computing elements in the database: present states, their changes, and outcomes of attempts from which they are judged."""

from collections.abc import Mapping

import asyncpg

from wms.db.database import Transaction
from wms.db.share import tell_changed
from wms.db.sql import load
from wms.ids import CeId
from wms.job.reasons import OF_FILES
from wms.matching import canary
from wms.messages import events
from wms.messages.replies import SiteMove
from wms.provisioning.health import ElementHealth, HealthChange, HealthPolicy, QueueOutcomes, apply

SQL = load(__file__)


async def read(tx: Transaction) -> dict[CeId, ElementHealth]:
    """Return the stored health of computing elements. The health of a whole site has an empty `ce`.

    Elements and sites that are absent are healthy.
    """
    return {CeId(row["site"], row["ce"]): _health(row) for row in await tx.fetch(SQL["read"])}


def _health(row: asyncpg.Record) -> ElementHealth:
    return ElementHealth(**{name: row[name] for name in ElementHealth.__struct_fields__})


def of(known: Mapping[CeId, ElementHealth], site: str, ce: str) -> ElementHealth:
    """Return the health of computing element `ce`, or that of its site if the whole site is avoided.

    `known` has the stored health of all.
    """
    whole = known.get(CeId(site, ""), ElementHealth())
    return whole if whole.avoided else known.get(CeId(site, ce), ElementHealth())


async def avoided(tx: Transaction) -> dict[CeId, str]:
    """Return the computing elements that get no work, and the sites under an empty `ce`, each with a text of the reason."""
    return {place: health.text() for place, health in (await read(tx)).items() if health.avoided}


async def move(
    tx: Transaction, place: CeId, moved: HealthChange, terms: HealthPolicy
) -> ElementHealth | None:
    """Apply a change of health to a computing element, or to a whole site if the `ce` of `place` is empty.

    `terms` sets how long states last. The state is stored and an event is sent. Return the new health. If the state does not change, store
    nothing and return None.
    """
    row = await tx.fetchrow(SQL["lock"], *place)
    assert row is not None
    before = _health(row)
    now = await tx.now()
    after = apply(before, moved, now, terms)
    if after is None:
        return None
    told = (after.since, after.until, after.reason, after.said_by, after.relapses)
    await tx.execute(SQL["write"], *place, after.state, *told, before.state, moved.event)
    fact = events.ElementState(
        site=place.site,
        ce=place.ce,
        at=now,
        event=moved.event,
        state=after.state,
        until=after.until,
        reason=after.reason,
        said_by=after.said_by,
    )
    tx.send(events.TOPIC, f"ce-{place.site}-{place.ce}", fact)
    if before.avoided or after.avoided:
        tell_changed(tx)
    return after


async def moves(tx: Transaction, site: str, ce: str, limit: int) -> list[SiteMove]:
    """Return the last `limit` health changes, newest first.

    With `ce`, they are those of the computing element and its site. Otherwise they are those of the site and all its elements.
    """
    return [SiteMove(**row) for row in await tx.fetch(SQL["moves"], site, ce, limit)]


async def forget(tx: Transaction, age: float, limit: int) -> int:
    """Delete up to `limit` health changes older than `age` seconds; return the number of deleted ones.

    For each element and site, the last change to another state and all later entries are kept.
    """
    return await tx.execute(SQL["forget"], age, limit)


async def may_judge(tx: Transaction) -> bool:
    """Try to take the lock for judging computing elements until the transaction ends. Return False if another transaction holds it."""
    alone: bool = await tx.fetchval(SQL["may_judge"])
    return alone


async def suspects(tx: Transaction, terms: HealthPolicy) -> set[CeId]:
    """Return the computing elements where enough recent attempts of jobs failed quickly that the element must be judged.

    `terms` has the thresholds.
    """
    rows = await tx.fetch(
        SQL["suspects"], terms.window_seconds, terms.quick_seconds, terms.failures, list(OF_FILES)
    )
    return {CeId(row["site"], row["ce"]) for row in rows}


async def tried(tx: Transaction, terms: HealthPolicy) -> list[QueueOutcomes]:
    """Return the outcomes of recent attempts at all computing elements, by kind of job and owner.

    Test jobs (canaries) are left out; `terms` sets what is recent.
    """
    rows = await tx.fetch(
        SQL["tried"], terms.window_seconds, terms.quick_seconds, canary.OWNER, list(OF_FILES)
    )
    return [QueueOutcomes(**row) for row in rows]
