"""The inbox of a site is read once for all attached pilots, and only while there are some."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from services.gateway import site_inboxes
from services.gateway.order_stream import OrderStream
from services.gateway.site_inboxes import SiteInboxes
from tests.services.job_agent.links import broker_settings
from tests.waiting import eventually
from wms.auth.principal import Principal
from wms.bus.kafka import Kafka, KafkaSettings
from wms.bus.topics import site_inbox_of
from wms.embedded.kafka_broker import KafkaBroker
from wms.errors import Unavailable


@pytest_asyncio.fixture(loop_scope="session")
async def kafka(broker: KafkaBroker) -> AsyncIterator[Kafka]:
    made = Kafka(broker_settings(broker), "gateway")
    await made.start()
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="session")
async def inboxes(kafka: Kafka) -> AsyncIterator[SiteInboxes]:
    made = SiteInboxes(kafka)
    running = asyncio.create_task(made.run())
    yield made
    running.cancel()
    await asyncio.wait([running])


@pytest.fixture
def site(tmp_path: Path) -> str:
    """Return a site of the test's own."""
    return f"site-{tmp_path.name}"


def pilot(pilot_id: str, site: str) -> Principal:
    return Principal(
        kind="pilot",
        owner="o",
        group="g",
        vo="v",
        pilot_id=pilot_id,
        site=site,
        ce="ce",
        token_id="t",
        expires_at=4e9,
    )


async def order(stream: OrderStream) -> bytes:
    (found,) = await stream.next(20)
    return found


async def test_many_pilots_of_a_site_share_one_reader(inboxes: SiteInboxes, kafka: Kafka, site: str) -> None:
    names = [f"p-{number}" for number in range(200)]
    streams = await asyncio.gather(*(inboxes.attach(pilot(name, site)) for name in names))
    assert (inboxes.sites, inboxes.pilots) == (1, 200)
    topic = site_inbox_of(site).name
    await kafka.send_many(topic, [name.encode() for name in names], [name.encode() for name in names])
    assert [await order(each) for each in streams] == [name.encode() for name in names]
    for each in streams:
        each.end("done")
    assert inboxes.pilots == 0


async def test_an_inbox_is_closed_once_nobody_is_attached_and_opened_again_for_the_next(
    inboxes: SiteInboxes, kafka: Kafka, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_inboxes, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(site_inboxes, "POLL_SECONDS", 0.05)
    (await inboxes.attach(pilot("p-1", site))).end("gone")
    await eventually(lambda: inboxes.sites == 0)
    stream = await inboxes.attach(pilot("p-1", site))
    await kafka.send(site_inbox_of(site).name, "p-1", b"{}")
    assert await order(stream) == b"{}"
    stream.end("done")


async def test_a_pilot_whose_sites_inbox_cannot_be_read_is_told_so(site: str) -> None:
    inboxes = SiteInboxes(Kafka(KafkaSettings(bootstrap="127.0.0.1:1"), "gateway"))
    running = asyncio.create_task(inboxes.run())
    with pytest.raises(Unavailable):
        await inboxes.attach(pilot("p-1", site))
    assert inboxes.sites == 0
    running.cancel()
    await asyncio.wait([running])


async def test_an_end_ends_all_streams(inboxes: SiteInboxes, site: str) -> None:
    streams = [await inboxes.attach(pilot(f"p-{number}", site)) for number in range(3)]
    inboxes.end()
    assert [bool(each.ended) for each in streams] == [True] * 3
