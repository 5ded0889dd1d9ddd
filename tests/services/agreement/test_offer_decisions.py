"""Decisions on offers: the earliest start, quotas, moves, one decider at a time, and what is left by a crash."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from services.agreement.config import SiteScript
from services.agreement.offer_decisions import MOST_TRIES
from services.agreement.site_script import ScriptedElement
from tests.services.agreement.offered import R, later, terms
from tests.services.agreement.site import Site, reserve
from tests.services.agreement.site_program import SiteProgram
from tests.services.world import World, user
from tests.waiting import eventually
from wms.agreement.calendar import SlotCalendar
from wms.agreement.decision import ReservationRules
from wms.agreement.quota import VoQuota
from wms.agreement.state import GRANTED, AgreementState
from wms.ids import AgreementId
from wms.messages.replies import Submitted

S = AgreementState


async def overbooked(site: Site, cpus: int = 4) -> bool:
    there = [each for each in (await site.all()).values() if each.state in GRANTED]
    bookings = [each.booking(each.changed_at, timedelta(days=1)) for each in there]
    return SlotCalendar(0, bookings).most_used() > cpus


async def test_offers_queue_up_and_the_last_does_not_fit_in_its_window(the_world: World, site: Site) -> None:
    jobs = await the_world.submitted(5)
    now = (await the_world.sql("select now()"))[0][0]
    offers = [terms(job, f"a-{n}", latest_start=now + timedelta(seconds=900)) for n, job in enumerate(jobs)]
    assert await site.reserve(*offers) == {
        **dict.fromkeys(("a-0", "a-1", "a-2", "a-3"), S.TEMPORARY),
        "a-4": S.DENIED,
    }
    found = await site.all()
    starts = [found[AgreementId(f"a-{n}")].start_at for n in range(4)]
    assert starts[0] == starts[1]
    assert starts[2] == starts[3] == found[AgreementId("a-0")].ends_at
    assert (found[AgreementId("a-4")].code, await overbooked(site)) == (R.NO_ROOM, False)


async def test_what_was_cancelled_or_has_expired_makes_room(the_world: World, site: Site) -> None:
    (job,) = await the_world.submitted()
    window = {"cpus": 4, "latest_start": (await the_world.sql("select now()"))[0][0] + timedelta(seconds=300)}
    assert await site.reserve(terms(job, **window)) == {"a-1": S.TEMPORARY}
    assert await site.reserve(terms(job, "a-2", **window)) == {"a-2": S.DENIED}
    await site.cancel("a-1")
    assert await site.reserve(terms(job, "a-3", **window)) == {"a-3": S.TEMPORARY}
    await later(the_world, 61)
    await site.upkeep.end()
    site.told()
    assert await site.reserve(terms(job, "a-4", **window)) == {"a-4": S.TEMPORARY}


async def test_quotas_count_what_is_decided_at_the_same_time(the_world: World) -> None:
    site = Site(the_world, cpus=64, rules=ReservationRules(quotas={"lhcb": VoQuota(cpus=5)}))
    (job,) = await the_world.submitted()
    await site.send(*(reserve(terms(job, f"a-{n}")) for n in range(4)))
    await site.decide()
    assert sorted(site.why().values()) == [R.GRANTED, R.GRANTED, R.QUOTA, R.QUOTA]


async def test_one_owner_has_half_of_the_cpus_while_another_asks(the_world: World) -> None:
    site = Site(the_world, rules=ReservationRules(owner_share=0.5))
    (job,) = await the_world.submitted()
    await site.reserve(*(terms(job, f"a-{n}") for n in range(2)))
    now = (await the_world.sql("select now()"))[0][0]
    found = await site.all()
    assert found[AgreementId("a-0")].start_at == found[AgreementId("a-1")].start_at, "nobody else has asked"
    await site.cancel("a-0", "a-1")
    others = await the_world.submit({}, who=user("bob"))
    assert isinstance(others, Submitted)
    await site.reserve(terms(others.ids[0][0], "b-1", owner="bob"))
    await site.cancel("b-1")
    soon = now + timedelta(seconds=300)
    told = await site.reserve(*(terms(job, f"c-{n}", latest_start=soon) for n in range(2)))
    assert told == {"c-0": S.TEMPORARY, "c-1": S.DENIED}
    assert (await site.all())[AgreementId("c-1")].code == R.OWNER_SHARE
    await the_world.sql("update agreement set created_at = created_at - interval '2 h' where owner = 'bob'")
    assert await site.reserve(terms(job, "d-1", latest_start=soon)) == {"d-1": S.TEMPORARY}


async def test_a_flexible_one_makes_room_until_it_is_confirmed(the_world: World, site: Site) -> None:
    (job,) = await the_world.submitted()
    soon = (await the_world.sql("select now()"))[0][0] + timedelta(seconds=60)
    await site.reserve(terms(job, "flexible", cpus=4, flexible=True))
    assert await site.reserve(terms(job, "strict", cpus=4, latest_start=soon)) == {
        "strict": S.TEMPORARY,
        "flexible": S.TEMPORARY,
    }
    found = await site.all()
    assert found[AgreementId("flexible")].start_at == found[AgreementId("strict")].ends_at
    assert (found[AgreementId("flexible")].code, await overbooked(site)) == (R.MOVED, False)
    await site.cancel("strict")
    await site.deciding.improve()
    assert [(each.agreement_id, each.code) for each in site.decisions()] == [("flexible", R.MOVED)]
    assert (await site.all())[AgreementId("flexible")].start_at <= soon
    await site.confirm("flexible")
    assert await site.reserve(terms(job, "late", cpus=4, latest_start=soon)) == {"late": S.DENIED}


async def test_two_services_of_a_site_never_overbook(the_world: World, site: Site) -> None:
    (job,) = await the_world.submitted()
    await site.upkeep.tell()
    for n in range(5):
        await site.send(*(reserve(terms(job, f"a-{n}-{m}")) for m in range(8)))
        await the_world.sql("update agreement_element set held_until = now()")
        await asyncio.gather(*(site.decider(name).round() for name in ("one", "two", "three")))
    await the_world.sql("update agreement_element set held_until = now() - interval '1 s'")
    await site.decide()
    assert {each.state for each in (await site.all()).values()} == {S.TEMPORARY}
    assert not await overbooked(site)


async def test_a_decider_that_lost_its_turn_decides_nothing(the_world: World, site: Site) -> None:
    (job,) = await the_world.submitted()
    await site.upkeep.tell()
    await site.send(reserve(terms(job)))
    assert await site.decider("one").round()
    await site.send(reserve(terms(job, "a-2")))
    assert not await site.decider("two").round()
    await later(the_world, 31)
    assert await site.decider("two").round()


@pytest.fixture
def program(tmp_path: Path) -> SiteProgram:
    return SiteProgram(tmp_path, cpus=4)


def scripted(world: World, program: SiteProgram) -> Site:
    element = ScriptedElement(SiteScript(program=str(program.path), seconds=60.0), ReservationRules(), 4)
    return Site(world, maker=element, helper=element)


async def test_a_reservation_of_which_nothing_was_heard_is_found_again(
    the_world: World, program: SiteProgram
) -> None:
    site = scripted(the_world, program)
    (job,) = await the_world.submitted()
    program.is_silent = True
    assert await site.reserve(terms(job)) == {}
    assert (await site.all())[AgreementId("a-1")].is_held
    program.is_silent = False
    await site.decide()
    (told,) = site.decisions()
    assert (told.state, told.reservation) == (S.TEMPORARY, "wms-a-1")
    assert told.start_at == program.held()["wms-a-1"]


async def test_an_offer_that_is_never_decided_is_denied_and_released(
    the_world: World, program: SiteProgram
) -> None:
    site = scripted(the_world, program)
    (job,) = await the_world.submitted()
    program.is_silent = True
    await site.reserve(terms(job))
    for _ in range(MOST_TRIES):
        await site.decide()
    assert site.why() == {"a-1": R.NOT_DECIDED}
    assert program.held()
    program.is_silent = False
    await site.reconciliation.release()
    assert not program.held()


async def test_what_is_cancelled_while_it_is_decided_is_released(
    the_world: World, program: SiteProgram
) -> None:
    site = scripted(the_world, program)
    (job,) = await the_world.submitted()
    await site.send(reserve(terms(job)))
    await site.upkeep.tell()
    program.waits = True
    deciding = asyncio.create_task(site.deciding.round())
    await eventually(program.held)
    await site.cancel("a-1")
    program.waits = False
    await deciding
    assert (await site.all())[AgreementId("a-1")].state is S.CANCELLED
    assert program.held()
    await site.reconciliation.release()
    assert not program.held()
    assert not (await site.all())[AgreementId("a-1")].is_held
