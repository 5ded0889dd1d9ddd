"""What a job manager does to a database that was restored: it keeps orders aside, and gives out no id and no epoch a second time."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from services.job_manager.maintenance.incarnations import Incarnations
from tests.contract.bus.instances import settings_for
from tests.services.world import World, ids, pilot
from tests.unit.messages.examples import MARK
from wms.auth.orders import OrderKeys
from wms.auth.service_signatures import ServiceSignatures
from wms.bus.database_marks import DatabaseMarks
from wms.bus.kafka import Kafka
from wms.db import incarnation, log_gap
from wms.db.offset import ConsumedTopic
from wms.embedded.kafka_broker import KafkaBroker
from wms.ids import AttemptId, Epoch, JobId
from wms.messages import commands

LEASE_SECONDS = 60.0


@asynccontextmanager
async def marks_on(broker: KafkaBroker) -> AsyncIterator[DatabaseMarks]:
    kafka = Kafka(settings_for(broker), "test")
    await kafka.start()
    try:
        yield DatabaseMarks(kafka, ServiceSignatures(OrderKeys([b"s" * 32]), time.time))
    finally:
        await kafka.close()


async def restored(
    the_world: World, broker: KafkaBroker, *, after: float = 0.0, last_job_id: int = 812
) -> None:
    """Begin an incarnation as after the restore of a state of `after` seconds ago, the second of the world's database."""
    async with marks_on(broker) as marks:
        feed = ConsumedTopic(marks.kafka.cluster_id, "job_manager.commands", commands.TOPIC)
        incarnations = Incarnations(the_world.db, marks, [feed], LEASE_SECONDS)
        await incarnations.begin(None, None, 0)
        await the_world.sql("update incarnation set marked_at = now() - make_interval(secs => $1)", after)
        async with the_world.db.transaction() as tx:
            before = await incarnation.current(tx)
        last = msgspec.structs.replace(MARK, last_job_id=JobId(last_job_id))
        await incarnations.begin(before, last, 0)
        await incarnations.begin(before, last, 0)


async def test_a_new_database_keeps_nothing_aside_and_begins_with_the_first_id(
    the_world: World, broker: KafkaBroker
) -> None:
    async with marks_on(broker) as marks:
        feed = ConsumedTopic(marks.kafka.cluster_id, "job_manager.commands", commands.TOPIC)
        await Incarnations(the_world.db, marks, [feed], LEASE_SECONDS).begin(None, None, 0)
    assert (await the_world.submitted())[0] < 10
    async with the_world.db.transaction() as tx:
        assert await log_gap.page(tx) == []


async def test_orders_in_the_log_are_kept_aside_up_to_its_end(the_world: World, broker: KafkaBroker) -> None:
    async with marks_on(broker) as marks:
        for partition in range(4):
            await marks.kafka.append(commands.TOPIC, partition, b"an order")
    await restored(the_world, broker)
    async with the_world.db.transaction() as tx:
        gaps = await log_gap.page(tx)
    assert sorted((gap["partition"], gap["cause"], gap["first_offset"]) for gap in gaps) == [
        (partition, "restored", 0) for partition in range(4)
    ]


async def test_no_id_and_no_epoch_is_given_out_a_second_time(the_world: World, broker: KafkaBroker) -> None:
    (old,) = await the_world.submitted()
    await restored(the_world, broker, last_job_id=4_999_999)
    (new,) = await the_world.submitted()
    assert new >= 10_000_000
    given = await the_world.match(pilot("p-1"), 2)
    assert sorted(given) == [(old, 100_001), (new, 100_001)]
    await the_world.expire(old)
    assert await the_world.match(pilot("p-2")) == [(old, 100_002)]


async def test_a_report_on_a_lease_that_the_database_does_not_know_changes_nothing(
    the_world: World, broker: KafkaBroker
) -> None:
    (old,) = await the_world.submitted()
    await restored(the_world, broker)
    await the_world.match(pilot("p-1"))
    past = AttemptId(old, Epoch(1))
    answer = await the_world.report(pilot("p-1"), accept=(past,))
    assert past in answer.lost
    assert await the_world.state(old) == "Matched"


async def test_leases_go_on_for_what_they_had_left(the_world: World, broker: KafkaBroker) -> None:
    held = await the_world.running()
    await the_world.sql("update lease set expires_at = now() - interval '1 h'")
    await restored(the_world, broker, after=3_630.0)
    await the_world._leases.sweep()
    assert await the_world.state(ids(held)[0]) == "Running"


async def test_a_mark_is_written_once_a_second_however_many_ask(
    the_world: World, broker: KafkaBroker
) -> None:
    await restored(the_world, broker)
    await the_world.sql("update incarnation set marked_at = now() - interval '1 h'")
    async with marks_on(broker) as marks:
        one, two = (Incarnations(the_world.db, marks, [], LEASE_SECONDS) for _ in range(2))
        await one.mark()
        await two.mark()
    assert [
        tuple(row) for row in await the_world.sql("select number, age from incarnation order by number")
    ] == [(1, 0), (2, 1)]
