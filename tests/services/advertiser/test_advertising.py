"""Ads on a real broker: which are sent when, and how they come into the database."""

import time
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import asdict, replace

from services.advertiser.advertising import AdPublisher, Publisher
from services.advertiser.config import SiteStatement
from services.advertiser.provider import SeenElement
from services.advertiser.site_token import SiteToken
from services.advertiser.sources import AdvertisedSource
from services.matcher import ads as matcher_ads
from tests.contract.bus.instances import settings_for
from tests.services.world import World
from tests.waiting import eventually
from wms.auth.keys import generate_keys, load_key
from wms.auth.token import Claims, Verifier, mint
from wms.bus.consumer import Delivery
from wms.bus.kafka import Kafka, Message
from wms.bus.topics import find
from wms.classad.ad import Ad as ClassAd
from wms.db import ad
from wms.embedded.kafka_broker import KafkaBroker
from wms.errors import Rejected, Unavailable
from wms.glue.glue1 import GlueComputingElement as Glue
from wms.messages.ads import TOPIC, Ad, Advertise
from wms.messages.wire import Codec
from wms.site import AdvertisedElement, ComputingElement, ad_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

CODEC: Codec[Ad] = Codec(Ad)
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Told:
    """Stands for a batch system: tells what the test says, or fails as the test says."""

    def __init__(self) -> None:
        self.seen: list[SeenElement] = []
        self.fault: Exception | None = None

    async def read(self) -> list[SeenElement]:
        if self.fault:
            raise self.fault
        return self.seen


class Site:
    """A site of a test's own that advertises what it is told, at times that the test says."""

    def __init__(self, kafka: Kafka, directory: Path) -> None:
        self.name = f"site-{uuid.uuid4().hex[:12]}"
        self.kafka = kafka
        self.told = Told()
        self.at = START
        self.may_still_exist = False
        generate_keys(directory)
        self.verifier = Verifier.from_file(directory / "jwks.json")
        token = mint(
            load_key(directory / "sites.pem"),
            Claims(kind="site", owner="advertiser", site=self.name),
            3_600,
            time.time(),
        )
        (directory / "token").write_text(token)
        source = AdvertisedSource(
            "told", self.told, lambda _: SiteStatement(requirements="other.Urgent"), 60.0, 300.0, 900.0
        )
        source = source._replace(may_still_exist=lambda _: self.may_still_exist)
        publisher = Publisher(kafka, SiteToken(str(directory / "token")))
        self.advertising = AdPublisher(publisher, source, now=lambda: self.at)

    def has(self, ce: str, *, slots: int = 8, free: int = 4, status: str = "Production") -> SeenElement:
        offer = ComputingElement(site=self.name, ce=ce, slots=slots, max_cpu_time=3_600)
        return SeenElement(offer=offer, glue=Glue(id=ce, name=ce, free_job_slots=free, status=status))

    async def look(self, after_seconds: float = 60.0) -> None:
        self.at += timedelta(seconds=after_seconds)
        await self.advertising.read_and_publish()

    async def said(self, count: int) -> list[Message]:
        """Return all that the site said, which is to be so many messages."""
        reader = await self.kafka.reader(TOPIC)
        found: list[Message] = []

        async def all_of_them() -> bool:
            found.extend(
                each
                for each in await reader.poll(0.2, 5_000)
                if (each.key or b"").startswith(self.name.encode())
            )
            return len(found) >= count

        try:
            reader.assign(dict.fromkeys(range(find(TOPIC).partitions), 0))
            await eventually(all_of_them, 20)
        finally:
            await reader.close()
        return sorted(found, key=lambda each: CODEC.decode(each.payload).advertised_at)

    async def ads(self, count: int) -> list[tuple[str, str, float]]:
        """Return of each message whether it advertises, what, and how many seconds after the first."""
        decoded = [CODEC.decode(each.payload) for each in await self.said(count)]
        first = decoded[0].advertised_at
        return [
            (
                "ad" if isinstance(each, Advertise) else "gone",
                each.element.ce if isinstance(each, Advertise) else each.ce,
                (each.advertised_at - first).total_seconds(),
            )
            for each in decoded
        ]


@pytest_asyncio.fixture(loop_scope="session")
async def site(broker: KafkaBroker, tmp_path: Path) -> AsyncIterator[Site]:
    connection = Kafka(settings_for(broker), "advertiser")
    await connection.start([find(TOPIC)])
    yield Site(connection, tmp_path)
    await connection.close()


async def test_what_the_token_does_not_cover_is_told_and_not_sent(site: Site) -> None:
    own = site.has("main")
    site.told.seen = [SeenElement(offer=replace(own.offer, site="cern"), glue=own.glue), own]
    await site.look()
    assert await site.ads(1) == [("ad", "main", 0.0)]
    assert site.advertising.trouble == "the token may not speak for cern"
    site.told.seen = [own]
    await site.look()
    assert not site.advertising.trouble


async def test_ads_come_each_period_and_between_them_only_for_news(site: Site) -> None:
    site.told.seen = [site.has("long"), site.has("short")]
    await site.look()
    await site.look()
    site.told.seen = [site.has("long", free=3), site.has("short")]
    await site.look()
    site.told.seen = [site.has("long", free=3), site.has("short", status="Draining")]
    await site.look()
    await site.look()
    await site.look()

    assert sorted(await site.ads(5), key=lambda each: (each[2], each[1])) == [
        ("ad", "long", 0.0),
        ("ad", "short", 0.0),
        ("ad", "short", 180.0),
        ("ad", "long", 300.0),
        ("ad", "short", 300.0),
    ]


async def test_small_changes_add_up_to_news(site: Site) -> None:
    for free in (4, 5, 6, 7):
        site.told.seen = [site.has("long", free=free)]
        await site.look()
    assert await site.ads(2) == [("ad", "long", 0.0), ("ad", "long", 120.0)]


async def test_what_is_gone_is_withdrawn_once(site: Site) -> None:
    site.told.seen = [site.has("long"), site.has("short")]
    await site.look()
    site.told.seen = [site.has("long")]
    await site.look()
    await site.look()
    assert [each for each in await site.ads(3) if each[0] == "gone"] == [("gone", "short", 60.0)]


async def test_what_is_not_heard_of_is_withdrawn_once_it_is_known_to_be_gone(site: Site) -> None:
    site.told.seen = [site.has("long"), site.has("short")]
    await site.look()
    site.may_still_exist = True
    site.told.seen = [site.has("long")]
    await site.look()
    site.may_still_exist = False
    await site.look()
    await site.look()
    assert [each for each in await site.ads(3) if each[0] == "gone"] == [("gone", "short", 120.0)]


async def test_what_no_matcher_would_read_is_not_sent_and_silences_nobody(site: Site) -> None:
    endless = site.has("endless")
    site.told.seen = [replace(endless, glue=replace(endless.glue, contact="x" * 5_000)), site.has("long")]
    await site.look()
    assert await site.ads(1) == [("ad", "long", 0.0)]


@pytest.mark.parametrize("fault", [Unavailable("no answer"), Rejected("SLURM_OUTPUT", "no JSON")])
async def test_a_source_that_fails_is_neither_advertised_nor_withdrawn_nor_fatal(
    site: Site, fault: Exception
) -> None:
    site.told.seen = [site.has("long")]
    await site.look()
    site.told.fault = fault
    with pytest.raises(Unavailable):
        await site.look(600)
    site.told.fault = None
    await site.look()
    assert await site.ads(2) == [("ad", "long", 0.0), ("ad", "long", 660.0)]


async def test_an_element_that_is_faulty_does_not_silence_the_others(site: Site) -> None:
    faulty = site.has("any")
    site.told.seen = [faulty, site.has("long")]
    assert faulty.offer.fault()
    await site.look()
    assert await site.ads(1) == [("ad", "long", 0.0)]


async def test_an_ad_comes_into_the_database_with_what_expressions_may_look_at(
    site: Site, the_world: World
) -> None:
    site.told.seen = [site.has("long", free=5)]
    await site.look()
    [message] = await site.said(1)
    principal = site.verifier.verify(message.token, time.time())
    async with the_world.db.transaction() as tx:
        await matcher_ads.handle(tx, [Delivery(principal, CODEC.decode(message.payload))])
        [element] = [each for each in await ad.fresh(tx) if each.site == site.name]
    offer = site.told.seen[0].offer
    assert element == AdvertisedElement(**asdict(offer), ad=ad_of(element))
    told = ClassAd.parse(ad_of(element))
    assert str(told.expression("GlueCEStateFreeJobSlots")) == "5"
    assert str(told.requirements) == "other.urgent"
    assert "AuthorizationCheck" in told


async def test_a_token_for_the_sites_of_an_index_is_believed_of_these_alone(
    site: Site, the_world: World, tmp_path: Path
) -> None:
    claims = Claims(kind="site", owner="index", sites=frozenset({"*.nordic.org", "umea"}))
    principal = site.verifier.verify(
        mint(load_key(tmp_path / "sites.pem"), claims, 60, time.time()), time.time()
    )
    said = [
        Advertise(element=ComputingElement(site=name, ce="c", slots=1, max_cpu_time=1), advertised_at=START)
        for name in ("a.nordic.org", "umea", "cern", "nordic.org")
    ]
    async with the_world.db.transaction() as tx:
        await matcher_ads.handle(tx, [Delivery(principal, each) for each in said])
        stored = {each.site for each in await ad.fresh(tx)}
    assert stored & {each.element.site for each in said} == {"a.nordic.org", "umea"}


async def test_an_ad_expires_and_a_newer_one_replaces_all_of_an_older(the_world: World) -> None:
    element = ComputingElement(site="s", ce="c", slots=1, max_cpu_time=1)
    now = datetime.now(UTC)
    first = Advertise(element=element, advertised_at=now, attributes={"A": 1}, rank="1", requirements="x")
    second = replace(
        first, advertised_at=now + timedelta(seconds=1), attributes={"B": 2}, rank="", requirements=""
    )
    async with the_world.db.transaction() as tx:
        await ad.store(tx, [first])
        await ad.store(tx, [second])
        await ad.store(tx, [first])
        [found] = await ad.fresh(tx)
    assert ad_of(found) == "[b = 2]"
    await the_world.sql("update ad set expires_at = now() - interval '1 s'")
    async with the_world.db.transaction() as tx:
        assert not await ad.fresh(tx)
