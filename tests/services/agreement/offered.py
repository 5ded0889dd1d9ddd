"""Offers and agreements in the database of a world."""

from datetime import timedelta
from typing import Any

from tests.services.world import World
from wms.agreement.agreement import Agreement, AgreementMark
from wms.agreement.reasons import AgreementReason
from wms.agreement.state import AgreementEvent
from wms.agreement.terms import AgreementTerms
from wms.db import agreement
from wms.ids import AgreementId, JobId
from wms.runtime import clock

E, R = AgreementEvent, AgreementReason


def terms(job_id: int, agreement_id: str = "a-1", **changed: Any) -> AgreementTerms:
    offer: dict[str, Any] = {
        "vo": "lhcb",
        "owner": "ann",
        "group": "physics",
        "site": "A",
        "ce": "ce",
        "cpus": 2,
        "duration_seconds": 600.0,
    }
    return AgreementTerms(agreement_id=AgreementId(agreement_id), job_id=JobId(job_id), **(offer | changed))


async def offered(world: World, *offers: AgreementTerms) -> None:
    async with world.db.transaction() as tx:
        await agreement.offer(tx, offers)


async def one(world: World, agreement_id: str = "a-1") -> Agreement:
    async with world.db.transaction() as tx:
        return (await agreement.read(tx, [agreement_id]))[AgreementId(agreement_id)]


async def marked(
    world: World, event: AgreementEvent, agreement_id: str = "a-1", **more: Any
) -> list[Agreement]:
    more.setdefault("code", R.GRANTED)
    async with world.db.transaction() as tx:
        return await agreement.move(
            tx, [AgreementMark(agreement_id=AgreementId(agreement_id), event=event, **more)]
        )


async def grant(world: World, agreement_id: str = "a-1", start: float = 0.0, seconds: float = 600.0) -> None:
    """Grant an offer from `start` seconds after now on."""
    begin = clock.now() + timedelta(seconds=start)
    await marked(world, E.GRANT, agreement_id, start_at=begin, ends_at=begin + timedelta(seconds=seconds))


async def later(world: World, seconds: float) -> None:
    """Move all times of agreements into the past, as if so many seconds had gone by."""
    await world.sql(
        """update agreement set expires_at = expires_at - d, start_at = start_at - d, ends_at = ends_at - d,
               earliest_start = earliest_start - d, latest_start = latest_start - d, created_at = created_at - d,
               changed_at = changed_at - d
           from make_interval(secs => $1) as d""",
        seconds,
    )
    await world.sql(
        "update agreement_element set held_until = held_until - make_interval(secs => $1)", seconds
    )
