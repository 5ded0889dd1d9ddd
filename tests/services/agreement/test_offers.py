"""What the broker sends to a site, whole, twice, late, of others."""

import msgspec

from tests.services.agreement.offered import R, later, terms
from tests.services.agreement.site import Site, reserve
from tests.services.world import World
from wms.agreement.state import AgreementState
from wms.bus.delivery import Delivery
from wms.ids import AgreementId

S = AgreementState


async def test_an_offer_is_reserved_confirmed_and_cancelled(the_world: World, site: Site) -> None:
    (job,) = await the_world.submitted()
    assert await site.reserve(terms(job)) == {"a-1": S.TEMPORARY}
    assert await site.confirm("a-1") == {"a-1": S.CONFIRMED}
    assert await site.cancel("a-1") == {"a-1": S.CANCELLED}


async def test_whatever_comes_twice_has_one_effect_and_is_answered_again(
    the_world: World, site: Site
) -> None:
    (job,) = await the_world.submitted()
    await site.reserve(terms(job))
    before = await site.all()
    assert await site.reserve(terms(job, cpus=4), terms(job)) == {"a-1": S.TEMPORARY}
    assert await site.all() == before
    await site.confirm("a-1")
    assert await site.confirm("a-1") == {"a-1": S.CONFIRMED}
    await site.cancel("a-1")
    assert await site.cancel("a-1") == {}
    assert await site.confirm("a-1") == {"a-1": S.CANCELLED}


async def test_offer_confirmation_and_cancellation_in_one_batch(the_world: World, site: Site) -> None:
    (job,) = await the_world.submitted()
    await site.send(reserve(terms(job)))
    assert await site.confirm("a-1") == {}, "it is not decided yet"
    assert await site.cancel("a-1", code=R.CANCELLED_BY_USER, text="by ann") == {"a-1": S.CANCELLED}
    await site.decide()
    assert site.told() == {}


async def test_a_late_confirmation_is_refused(the_world: World, site: Site) -> None:
    (job,) = await the_world.submitted()
    await site.reserve(terms(job))
    await later(the_world, 61)
    assert await site.confirm("a-1") == {"a-1": S.TEMPORARY}
    await site.upkeep.end()
    assert site.told() == {"a-1": S.EXPIRED}
    assert await site.confirm("a-1") == {"a-1": S.EXPIRED}


async def test_an_offer_for_a_job_of_another_vo_is_denied(the_world: World, site: Site) -> None:
    (job,) = await the_world.submitted()
    await site.send(reserve(terms(job, vo="atlas")), reserve(terms(job, "a-2", owner="bob")))
    assert site.why() == {"a-1": R.INVALID_OFFER, "a-2": R.INVALID_OFFER}


async def test_an_element_without_reservations_denies(the_world: World, site: Site) -> None:
    (job,) = await the_world.submitted()
    await site.send(reserve(terms(job, ce="other")))
    assert site.why() == {"a-1": R.NO_RESERVATIONS}


async def test_messages_of_another_site_are_left_to_its_service(the_world: World, site: Site) -> None:
    (job,) = await the_world.submitted()
    await site.send(reserve(terms(job, site="B")))
    assert await site.all() == {}
    await site.reserve(terms(job, "a-2"))
    await the_world.sql("update agreement set site = 'B'")
    assert await site.cancel("a-2") == {}
    assert await site.confirm("a-2", "unknown") == {}


async def test_many_offers_of_one_id_are_one(the_world: World, site: Site) -> None:
    (job,) = await the_world.submitted()
    offer = reserve(terms(job))
    await site.send(offer, msgspec.structs.replace(offer, cpus=3), offer)
    assert {each.cpus for each in (await site.all()).values()} == {2}
    assert set(await site.all()) == {AgreementId("a-1")}


async def test_the_decider_is_woken_once_new_offers_are_stored(the_world: World, site: Site) -> None:
    (job,) = await the_world.submitted()
    async with the_world.db.transaction() as tx:
        await site.offers.handle(tx, [Delivery(None, reserve(terms(job)))])
        assert site.woken == 0
    assert site.woken == 1
    await site.send(reserve(terms(job)))
    assert site.woken == 1, "it is stored already"
