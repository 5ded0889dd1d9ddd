"""Ads on a broker as a source of discovery: whose are believed, and for how long."""

import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.contract.bus.instances import settings_for
from tests.waiting import eventually
from wms.auth.keys import generate_keys, load_key
from wms.auth.token import Claims, Verifier, mint
from wms.bus.ad_topic import DISCOVERED, AdTopic
from wms.bus.kafka import Kafka
from wms.bus.topics import find
from wms.discovery.address import Address
from wms.discovery.discovery import Discovery
from wms.embedded.server import KafkaServer
from wms.errors import Rejected
from wms.messages.ads import TOPIC, Advertise, Withdraw
from wms.messages.wire import encode
from wms.site import ComputingElement

pytestmark = pytest.mark.asyncio(loop_scope="session")

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Grid:
    """Another system of a test's own, whose sites publish themselves."""

    def __init__(self, kafka: Kafka, keys: Path, cluster: KafkaServer) -> None:
        generate_keys(keys)
        self.at = START
        self.name = uuid.uuid4().hex[:12]
        self.address = Address(f"kafka://{cluster.bootstrap}/{TOPIC}", "index")
        self.topic = AdTopic(settings_for(cluster), Verifier.from_file(keys / "jwks.json"), lambda: self.at)
        self._kafka = kafka
        self._keys = keys

    def site(self, name: str) -> str:
        return f"{name}.{self.name}"

    def ad(self, name: str, **said: object) -> Advertise:
        element = ComputingElement(site=self.site(name), ce="main", slots=4, max_cpu_time=3_600)
        return replace(Advertise(element=element, advertised_at=self.at, lifetime_seconds=900), **said)

    async def send(
        self, *messages: Advertise | Withdraw, speaks_for: str | None = None, token: str = ""
    ) -> None:
        for message in messages:
            site = message.element.site if isinstance(message, Advertise) else message.site
            claims = Claims(kind="site", owner="x", site=speaks_for or site)
            bearer = token or mint(load_key(self._keys / "sites.pem"), claims, 3_600, START.timestamp())
            await self._kafka.send(TOPIC, f"{site}/main", encode(message), bearer)

    async def found(self) -> list[str]:
        """Return which of this grid's sites are found."""
        told = await self.topic.ask(self.address)
        return sorted(each.site.partition(".")[0] for each in told.elements if each.site.endswith(self.name))


@pytest_asyncio.fixture(loop_scope="session")
async def grid(cluster: KafkaServer, tmp_path: Path) -> AsyncIterator[Grid]:
    kafka = Kafka(settings_for(cluster), "sites")
    await kafka.start([find(TOPIC)])
    made = Grid(kafka, tmp_path, cluster)
    try:
        yield made
    finally:
        await made.topic.close()
        await kafka.close()


async def test_what_sites_say_of_themselves_is_found_until_it_is_over_or_withdrawn(grid: Grid) -> None:
    await grid.send(grid.ad("a"), grid.ad("b"), grid.ad("short", lifetime_seconds=60))
    assert await grid.found() == ["a", "b", "short"]
    grid.at += timedelta(seconds=61)
    assert await grid.found() == ["a", "b"]
    await grid.send(grid.ad("a"), Withdraw(site=grid.site("b"), ce="main", advertised_at=grid.at))
    assert await grid.found() == ["a"]
    grid.at += timedelta(seconds=899)
    assert await grid.found() == ["a"], "its life began anew"
    grid.at += timedelta(seconds=1)
    assert await grid.found() == []


async def test_an_ad_is_believed_by_its_token_alone(grid: Grid, tmp_path: Path) -> None:
    generate_keys(tmp_path / "others")
    claims = Claims(kind="site", owner="x", site=grid.site("forged"))
    forged = mint(load_key(tmp_path / "others" / "sites.pem"), claims, 3_600, START.timestamp())
    await grid.send(grid.ad("good"))
    await grid.send(grid.ad("anothers"), speaks_for=grid.site("good"))
    await grid.send(grid.ad("forged"), token=forged)
    await grid.send(grid.ad("nobodys"), token="none")
    await grid.send(Withdraw(site=grid.site("good"), ce="main", advertised_at=grid.at), token=forged)
    await grid.send(grid.ad("last"))
    assert await grid.found() == ["good", "last"]


async def test_neither_an_older_ad_nor_a_clock_that_is_ahead_wins(grid: Grid) -> None:
    later = grid.ad("a", advertised_at=grid.at + timedelta(seconds=10), lifetime_seconds=60)
    await grid.send(later, grid.ad("a", lifetime_seconds=86_400))
    await grid.send(grid.ad("ahead", advertised_at=grid.at + timedelta(days=365), lifetime_seconds=60))
    assert await grid.found() == ["a", "ahead"]
    grid.at += timedelta(seconds=61)
    assert await grid.found() == []


async def test_what_was_discovered_is_not_taken_at_second_hand(grid: Grid) -> None:
    await grid.send(grid.ad("own"), grid.ad("heard", attributes={DISCOVERED: "https://index.example.org/"}))
    assert await grid.found() == ["own"]


async def test_a_topic_is_a_source_like_others(grid: Grid) -> None:
    attributes = {"GlueCEUniqueID": "ce/main", "GlueCEName": "main", "GlueCEStateFreeJobSlots": 3}
    await grid.send(grid.ad("a", attributes=attributes))
    other = Address(grid.address.url.replace(TOPIC, "wms.job.reports"), "index")
    async with Discovery({"kafka": grid.topic}, clock=lambda: 0.0) as finder:

        async def heard() -> bool:
            found = await finder.find([grid.address, other])
            [element] = [each for each in found.elements if each.site == grid.site("a")]
            assert element.offer is not None
            assert (element.offer.slots, element.glue.free_job_slots) == (4, 3)
            return [each.outcome for each in found.visits][1] in ("failed", "resting")

        await eventually(heard)


async def test_other_topics_are_not_read(grid: Grid) -> None:
    with pytest.raises(Rejected, match="no topic of ads"):
        await grid.topic.ask(Address(grid.address.url.replace(TOPIC, "wms.job.reports"), "index"))
