"""What sites are told of agreements on behalf of jobs."""

from typing import Any

import msgspec
import pytest

from services.resource_broker import agreements
from services.resource_broker.next_step import AgreementRequest
from tests.services.brokers import BrokerWorld
from tests.services.resource_broker.test_brokered_jobs import loaded
from tests.services.world import World
from wms.db import job_record
from wms.dispatch.reservation import LATE_SECONDS
from wms.ids import CeId
from wms.messages.agreements import OFFERS_TOPIC, Confirm, Reserve, ToSite

_TO_SITE: msgspec.json.Decoder[Any] = msgspec.json.Decoder(ToSite)


async def test_an_offer_says_what_is_reserved_for_whom_and_when(
    brokers: BrokerWorld, the_world: World
) -> None:
    wishes = {"latest_start_after": 600, "flexible": False}
    (job_id,) = await brokers.submitted(preferences=wishes, processors=4, wall_time=3_600)
    (job,) = await loaded(brokers, the_world)
    async with the_world.db.transaction() as tx:
        agreements.request(tx, [(job, AgreementRequest("7-1", CeId("A", "ce")))], 60.0, {})
    (told,) = map(_TO_SITE.decode, the_world.take(OFFERS_TOPIC))
    assert (told.agreement_id, told.job_id, told.owner, told.vo) == ("7-1", job_id, "ann", "lhcb")
    assert (told.site, told.ce, told.cpus, told.duration_seconds) == ("A", "ce", 4, 3_600 + 120)
    assert (told.latest_start - told.earliest_start).total_seconds() == 600
    assert (told.flexible, told.expires_in_seconds) == (False, 60.0)


async def test_a_reservation_begins_so_early_that_the_program_starts_in_its_window(
    brokers: BrokerWorld, the_world: World
) -> None:
    wishes = {"earliest_start_after": 3_600, "latest_start_after": 15}
    await brokers.submitted(preferences=wishes, wall_time=95)
    (job,) = await loaded(brokers, the_world)
    wanted = AgreementRequest("7-1", CeId("A", "ce"), moving_seconds=41.0, fetching_seconds=41.0)
    async with the_world.db.transaction() as tx:
        agreements.request(tx, [(job, wanted)], 60.0, {})
    (told,) = map(_TO_SITE.decode, the_world.take(OFFERS_TOPIC))
    window = job.facts.window
    assert (window.earliest - told.earliest_start).total_seconds() == 41
    assert (window.latest - told.latest_start).total_seconds() == 41
    pilots = (told.duration_seconds - LATE_SECONDS) // 60 * 60
    assert pilots >= 95 + 41, "the whole minutes that the pilot requests hold the program and its files"


async def test_files_come_and_go_within_what_is_reserved(brokers: BrokerWorld, the_world: World) -> None:
    """The pilot starts in its reservation and moves the files: their predicted seconds are reserved beside the program's."""
    await brokers.advertise("A")
    await brokers.reserves("A")
    wishes = {"stage_in_seconds": 600, "stage_out_seconds": 60}
    await brokers.submitted(preferences=wishes, wall_time=3_600)
    await brokers.step()
    (told,) = map(_TO_SITE.decode, the_world.take(OFFERS_TOPIC))
    assert 3_600 + 660 <= told.duration_seconds < 3_600 + 10 * 660


@pytest.mark.parametrize(("most", "asked"), [(3_600, 3_600), (3_650, 3_650), (4_000, 3_720), (3_000, 3_600)])
async def test_what_is_added_to_a_programs_time_is_no_more_than_the_site_grants(
    brokers: BrokerWorld, the_world: World, most: int, asked: int
) -> None:
    await brokers.advertise("A")
    await brokers.reserves("A")
    template = f'{{"max_seconds": {most}}}'
    await the_world.sql("update agreement_element set template = $1::text::jsonb", template)
    await brokers.submitted(wall_time=3_600)
    await brokers.step()
    (told,) = map(_TO_SITE.decode, the_world.take(OFFERS_TOPIC))
    assert told.duration_seconds == asked


async def test_an_element_with_too_long_a_queue_is_asked_and_without_a_grant_not_chosen(
    brokers: BrokerWorld, the_world: World
) -> None:
    await brokers.advertise("A", slots=4, GlueCEStateFreeJobSlots=0, GlueCEStateWaitingJobs=400)
    await brokers.reserves("A")
    (job_id,) = await brokers.submitted(preferences={"latest_start_after": 600})
    await brokers.step()
    assert [type(_TO_SITE.decode(each)) for each in the_world.take(OFFERS_TOPIC)] == [Reserve]
    await brokers.due()
    await brokers.step()
    record = await brokers.record(job_id)
    assert (record.phase, record.reason) == ("Choosing", "NO_AGREEMENT")
    assert "latest start: it could start in" in record.reason_text
    assert await brokers.placements(job_id) == []


async def test_an_agreement_of_no_known_site_is_not_spoken_of(brokers: BrokerWorld, the_world: World) -> None:
    await brokers.submitted()
    (job,) = await loaded(brokers, the_world)
    async with the_world.db.transaction() as tx:
        agreements.cancel(tx, [(job, ("7-1",))])
        agreements.confirm(tx, [(job, ("7-1",))])
    assert the_world.take(OFFERS_TOPIC) == []


async def granted(world: World, seconds: float) -> None:
    """Decide on all offers as a site would: each starts so many seconds from now."""
    for told in map(_TO_SITE.decode, world.take(OFFERS_TOPIC)):
        if isinstance(told, Reserve):
            await world.sql(
                'insert into agreement (agreement_id, job_id, vo, owner, "group", site, ce, cpus, duration_seconds,'
                " flexible, expires_in_seconds, state, start_at, ends_at, reservation, expires_at) values ($1, $2, $3,"
                " $4, $5, $6, $7, 1, 60, false, 60, 'Temporary', now() + make_interval(secs => $8),"
                " now() + make_interval(secs => $8 + 60), 'r-' || $6, now() + interval '60 s')",
                *(
                    told.agreement_id,
                    told.job_id,
                    told.vo,
                    told.owner,
                    told.group,
                    told.site,
                    told.ce,
                    seconds,
                ),
            )
        elif isinstance(told, Confirm):
            await world.sql(
                "update agreement set state = 'Confirmed' where agreement_id = $1", told.agreement_id
            )
        else:
            await world.sql(
                "update agreement set state = 'Cancelled' where agreement_id = $1", told.agreement_id
            )


async def test_several_sites_reserve_one_is_confirmed_and_the_others_cancelled(
    brokers: BrokerWorld, the_world: World
) -> None:
    for site in ("A", "B"):
        await brokers.advertise(site)
        await brokers.reserves(site)
    (job_id,) = await brokers.submitted()
    await brokers.step()
    assert (await brokers.record(job_id)).phase == "Deciding"
    for phase in ("Confirming", "Placed"):
        await granted(the_world, 30.0)
        async with the_world.db.transaction() as tx:
            await job_record.decided(tx, [job_id])
        await brokers.step()
        assert (await brokers.record(job_id)).phase == phase
    (placed,) = await brokers.placements(job_id)
    assert placed.reservation == f"r-{placed.site}"
    states = await the_world.sql("select state from agreement order by state")
    assert [row["state"] for row in states] == ["Cancelled", "Confirmed"]
