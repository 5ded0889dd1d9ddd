"""What sites are told of agreements on behalf of jobs."""

from typing import Any

import msgspec

from services.resource_broker import agreements
from services.resource_broker.next_step import AgreementRequest
from tests.services.brokers import BrokerWorld
from tests.services.resource_broker.test_brokered_jobs import loaded
from tests.services.world import World
from wms.ids import CeId
from wms.messages.agreements import OFFERS_TOPIC, ToSite

_TO_SITE: msgspec.json.Decoder[Any] = msgspec.json.Decoder(ToSite)


async def test_an_offer_says_what_is_reserved_for_whom_and_when(
    brokers: BrokerWorld, the_world: World
) -> None:
    wishes = {"latest_start_after": 600, "flexible": False}
    (job_id,) = await brokers.submitted(preferences=wishes, processors=4, wall_time=3_600)
    (job,) = await loaded(brokers, the_world)
    async with the_world.db.transaction() as tx:
        agreements.request(tx, [(job, AgreementRequest("7-1", CeId("A", "ce")))], 60.0)
    (told,) = map(_TO_SITE.decode, the_world.take(OFFERS_TOPIC))
    assert (told.agreement_id, told.job_id, told.owner, told.vo) == ("7-1", job_id, "ann", "lhcb")
    assert (told.site, told.ce, told.cpus, told.duration_seconds) == ("A", "ce", 4, 3_600)
    assert (told.latest_start - told.earliest_start).total_seconds() == 600
    assert (told.flexible, told.expires_in_seconds) == (False, 60.0)


async def test_an_agreement_of_no_known_site_is_not_spoken_of(brokers: BrokerWorld, the_world: World) -> None:
    await brokers.submitted()
    (job,) = await loaded(brokers, the_world)
    async with the_world.db.transaction() as tx:
        agreements.cancel(tx, [(job, ("7-1",))])
        agreements.confirm(tx, [(job, "7-1")])
    assert the_world.take(OFFERS_TOPIC) == []
