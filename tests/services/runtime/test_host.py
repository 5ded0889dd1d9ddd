"""The host of a service: what it signs, and how it starts and ends."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import asyncpg
import msgspec

from tests.services.hosting import hosted, settings
from tests.services.world import World
from tests.waiting import eventually
from wms.bus.delivery import Delivery
from wms.db.database import Transaction
from wms.ids import JobId
from wms.messages import broker
from wms.messages.wire import encode
from wms.runtime import clock
from wms.runtime.config import ServiceConfig
from wms.runtime.host import Host


async def test_messages_between_services_are_signed_and_need_no_token(
    the_world: World, kafka: str, tmp_path: Path
) -> None:
    got: list[Delivery[Any]] = []

    async def handle(tx: Transaction, batch: list[Delivery[Any]]) -> None:
        got.extend(batch)

    async def build(host: Host, config: ServiceConfig) -> None:
        host.consume("jobs", broker.TOPIC, broker.ToBroker, handle)

    config = msgspec.convert(settings(tmp_path, the_world.url, kafka), ServiceConfig)
    mine = broker.BrokerJob(
        job_id=JobId(uuid.uuid4().int >> 80), seq=3, at=clock.now(), owner="ann", owner_group="g", vo="v"
    )
    async with hosted("listener", config, build) as host:
        running = asyncio.create_task(host.run())
        try:
            # Unsigned, as anybody could send it.
            await host.kafka.send(broker.TOPIC, "7", encode(msgspec.structs.replace(mine, seq=4)))
            async with host.db.transaction() as tx:
                tx.send(broker.TOPIC, "7", mine)
            await eventually(lambda: any(each.message == mine for each in got))
        finally:
            host.stop()
            await running
    assert [(each.message, each.principal) for each in got if each.message.job_id == mine.job_id] == [
        (mine, None)
    ]


async def test_a_start_whose_connection_is_cut_goes_on(the_world: World, kafka: str, tmp_path: Path) -> None:
    """As on a busy machine, where a lock or a connection may be lost in any step of a start."""

    async def build(host: Host, config: ServiceConfig) -> None:
        """A host without loops of its own."""

    config = msgspec.convert(settings(tmp_path, the_world.url, kafka), ServiceConfig)
    other = await asyncpg.connect(the_world.url)
    try:
        async with hosted("starting", config, build) as host:
            async with other.transaction():
                await other.execute("lock table service_instance in access exclusive mode")
                running = asyncio.create_task(host.run())
                await eventually(lambda: other.fetchval(CUT))
            await eventually(lambda: other.fetchval(BEATS, host.instance_id))
            host.stop()
            await running
    finally:
        await other.close()


CUT = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'starting' and wait_event_type = 'Lock'"
BEATS = "select count(*) from service_instance where instance_id = $1"
