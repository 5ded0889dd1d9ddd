"""Incoming jobs to the broker: a job that comes back goes to the next best, one that its user sends again is tried everywhere."""

from tests.services.brokers import BrokerWorld, sound
from tests.services.world import World
from wms.messages import broker


async def test_the_next_best_follows_a_placement_that_failed(brokers: BrokerWorld, the_world: World) -> None:
    for site in ("A", "B"):
        await brokers.advertise(site)
    (job_id,) = await brokers.submitted()
    await brokers.step()
    (first,) = await brokers.placements(job_id)
    await brokers.fail(job_id)
    assert await the_world.state(job_id) == "Checking"
    await brokers.step()
    second = (await brokers.placements(job_id))[-1]
    assert {first.site, second.site} == {"A", "B"}
    assert (second.attempt, second.state) == (2, "Ordered")
    await brokers.fail(job_id)
    await brokers.step()
    assert await the_world.state(job_id) == "Held"
    assert (await the_world.reasons(job_id))[-1] == "NOT_PLACED"
    (row,) = await the_world.sql(
        "select text from job_event where job_id = $1 order by seq desc limit 1", job_id
    )
    assert row["text"].count("REFUSED: no room") == 2
    await sound(the_world)


async def test_released_it_is_tried_everywhere_again(brokers: BrokerWorld, the_world: World) -> None:
    await brokers.advertise("A")
    (job_id,) = await brokers.submitted()
    await brokers.step()
    await brokers.fail(job_id)
    await brokers.step()
    assert await the_world.state(job_id) == "Held"
    await the_world.order("release", job_id)
    await brokers.step()
    assert await the_world.state(job_id) == "Waiting"


async def test_orders_that_never_came_are_found(brokers: BrokerWorld, the_world: World) -> None:
    await brokers.advertise("A")
    (job_id,) = await brokers.submitted()
    the_world.take(broker.TOPIC)
    await brokers.orders.look()
    await brokers.step()
    assert len(await brokers.placements(job_id)) == 1
