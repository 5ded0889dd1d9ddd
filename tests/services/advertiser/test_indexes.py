"""What index servers lead to, as the advertiser has it: whose ads these are, and what is gone and what is only not heard of."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from services.advertiser.advertising import AdPublisher, Publisher, SourceLoop
from services.advertiser.config import AdmittedIdentity, AdvertisingSettings, Config, IndexSettings
from services.advertiser.indexes import Indexes
from services.advertiser.provider import SeenElement
from services.advertiser.site_token import SiteToken
from services.advertiser.sources import sources
from tests.services.discovery.index_servers import ARC_XML, Held, IndexServers, index_servers, queue
from wms.auth.principal import Principal
from wms.bus.ad_topic import DISCOVERED
from wms.bus.kafka import Kafka, KafkaSettings
from wms.errors import Rejected, Unavailable
from wms.ids import CeId
from wms.runtime import clock
from wms.site import ComputingElement

pytestmark = pytest.mark.asyncio(loop_scope="session")

Make = Callable[..., Indexes]


def voice(*sites: str) -> Principal:
    """Return who may speak for these sites."""
    told = frozenset(sites or ("*",))
    return Principal(kind="site", owner="i", group="", vo="", sites=told, token_id="t", expires_at=0)


@pytest_asyncio.fixture(loop_scope="session")
async def servers() -> AsyncIterator[IndexServers]:
    async with index_servers() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def make(servers: IndexServers) -> AsyncIterator[Make]:
    made: list[Indexes] = []

    def indexes(*, speaks_for: tuple[str, ...] = (), **said: object) -> Indexes:
        settings = IndexSettings(urls=[servers.url("top")], fresh_seconds=0, patience_seconds=30, **said)  # type: ignore[arg-type] # as said
        made.append(Indexes(settings, KafkaSettings(), lambda: voice(*speaks_for)))
        return made[-1]

    yield indexes
    for each in made:
        await each.close()


def places(seen: list[SeenElement]) -> list[tuple[str, str]]:
    return [(each.offer.site, each.offer.ce) for each in seen]


async def test_elements_are_of_their_own_sites_and_can_be_advertised(
    servers: IndexServers, make: Make
) -> None:
    servers.lists("top", indexes=("umea", "lund"), elements=("arex",))
    servers.describes("umea", "umea", "VO:lhcb")
    servers.describes("lund", "lund")
    servers.answers["arex/rest/1.0/info"] = ARC_XML
    seen = await make(sites={"127.0.0.1": "nordic"}).read()
    assert places(seen) == [("umea", "main"), ("lund", "main"), ("nordic", "main"), ("nordic", "short")]
    assert {each.offer.dispatcher for each in seen} == {"arc"}
    assert [each.offer.fault() for each in seen] == [None] * 4
    assert seen[0].offer.vos == ("lhcb",)
    assert (seen[0].offer.slots, seen[0].offer.max_cpu_time) == (64, 2880 * 60)


async def test_only_sites_that_the_token_may_speak_for_are_advertised(
    servers: IndexServers, make: Make
) -> None:
    servers.answers["top"] = queue("a.nordic.org") + b"\n" + queue("cern")
    assert places(await make(speaks_for=("*.nordic.org",)).read()) == [("a.nordic.org", "main")]
    # What an index calls a site does not help it, what we call it does.
    assert places(await make(speaks_for=("umea",), sites={"cern": "umea"}).read()) == [("umea", "main")]


async def test_only_elements_that_let_somebody_in_are_advertised(servers: IndexServers, make: Make) -> None:
    servers.answers["top"] = b"\n".join(
        [queue("open"), queue("a", "VO:atlas"), queue("b", "VOMS:/lhcb/Role=prod")]
    )
    seen = await make(for_whom=[AdmittedIdentity(vo="lhcb", group="prod")]).read()
    assert places(seen) == [("open", "main"), ("b", "main")]
    assert places(await make(for_whom=[AdmittedIdentity(vo="lhcb", group="user")]).read()) == [
        ("open", "main")
    ]
    assert len(await make().read()) == 3


async def test_two_elements_of_one_name_are_one_unless_they_are_told_apart(
    servers: IndexServers, make: Make
) -> None:
    servers.answers["top"] = queue("umea") + b"\n" + queue("lund")
    [seen] = await make(site="sweden").read()
    assert seen.glue.id == "ce.umea:2119/main"
    apart = await make(sites={"umea": "north", "lund": "south"}).read()
    assert places(apart) == [("north", "main"), ("south", "main")]


async def test_what_an_index_tells_of_no_more_is_gone_and_what_is_not_heard_of_may_not_be(
    servers: IndexServers, make: Make
) -> None:
    servers.lists("top", indexes=("nordic", "east"))
    servers.lists("nordic", indexes=("umea", "lund"))
    servers.answers["umea"] = queue("umea")
    servers.answers["lund"] = queue("lund") + b"\n" + queue("malmo")
    servers.describes("east", "riga")
    indexes = make()
    assert len(await indexes.read()) == 4

    servers.answers["lund"] = queue("lund")
    servers.answers.pop("umea")
    assert places(await indexes.read()) == [("lund", "main"), ("riga", "main")]
    assert indexes.may_still_exist(CeId("umea", "main")), "its server fails"
    assert not indexes.may_still_exist(CeId("malmo", "main")), "its server tells of it no more"

    servers.answers.pop("nordic")
    assert places(await indexes.read()) == [("riga", "main")]
    assert indexes.may_still_exist(CeId("lund", "main")), "who would lead there fails"
    assert indexes.may_still_exist(CeId("umea", "main"))

    servers.lists("top", indexes=("east",))
    assert places(await indexes.read()) == [("riga", "main")]
    assert not indexes.may_still_exist(CeId("lund", "main")), "nobody leads there any more"


async def test_no_index_at_all_is_unavailable(servers: IndexServers, make: Make) -> None:
    with pytest.raises(Unavailable, match="404"):
        await make().read()


async def test_indexes_lead_to_no_hosts_that_are_not_wanted(servers: IndexServers, make: Make) -> None:
    servers.lists("top", indexes=("umea",))
    servers.describes("umea", "umea")
    assert not await make(hosts=["*.example.org"]).read()
    assert servers.asked["umea"] == 0


async def test_the_advertiser_says_of_whatever_it_found_that_it_did_and_lets_go_of_it_at_the_end(
    servers: IndexServers, tmp_path: Path
) -> None:
    held = Held()
    servers.answers["top"] = held
    config = Config(
        advertising=AdvertisingSettings(token_file=str(tmp_path / "token")),
        indexes=[IndexSettings(urls=[servers.url("top") + "?key=1"], attributes={"Odd": 1})],
    )
    [source] = sources(config)
    offer = ComputingElement(site="umea", ce="main", slots=1, max_cpu_time=1)
    assert source.settings(offer).attributes == {"Odd": 1, DISCOVERED: servers.url("top")}
    publisher = Publisher(Kafka(config.kafka, "advertiser"), SiteToken(config.advertising.token_file))
    looking = SourceLoop(AdPublisher(publisher, source, now=clock.now), source)
    running = asyncio.create_task(looking.run())
    async with asyncio.timeout(20):
        await held.asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert isinstance(source.provider, Indexes)
    assert not source.provider._discovery._flights, "nobody is asked any longer"


async def test_indexes_must_begin_somewhere() -> None:
    with pytest.raises(Rejected, match="no urls"):
        Indexes(IndexSettings(urls=[]), KafkaSettings(), voice)


async def test_a_broker_is_not_read_without_the_keys_of_its_issuers() -> None:
    settings = IndexSettings(urls=["kafka://127.0.0.1:9/wms.resource.ads"])
    with pytest.raises(Rejected, match="jwks"):
        Indexes(settings, KafkaSettings(), voice)
