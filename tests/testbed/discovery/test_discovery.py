"""A real ARC element is found through an index on the web and in a file, by who may ask it."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from services.advertiser.config import AdmittedIdentity, IndexSettings
from services.advertiser.indexes import Indexes
from tests.middleware import Sites
from tests.services.discovery.index_servers import IndexServers, index_servers
from wms.auth.principal import Principal
from wms.bus.kafka import KafkaSettings
from wms.discovery.address import address
from wms.discovery.discovery import Discovery
from wms.discovery.document import read_index
from wms.discovery.file import FileSource
from wms.discovery.http import Web
from wms.discovery.port import Source
from wms.discovery.search import Found
from wms.web import WebIdentity

pytestmark = [pytest.mark.testbed, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(loop_scope="session")
async def servers(testbed: Sites) -> AsyncIterator[IndexServers]:
    async with index_servers() as running:
        running.lists("top", indexes=("nordic", "gone"))
        running.answers["nordic"] = f"u={testbed.told['arc']['url']} t=org.nordugrid.arcrest".encode()
        yield running


async def find(credential: WebIdentity, url: str, token_hosts: Sequence[str] = ()) -> Found:
    web = Web(credential, token_hosts)
    sources: dict[str, Source] = {"http": web, "https": web, "file": FileSource()}
    async with Discovery(sources) as discovery:
        return await discovery.find([address(url, "index")])


async def test_an_element_is_found_by_proxy_and_tells_of_its_queues(
    testbed: Sites, servers: IndexServers
) -> None:
    told = testbed.told["arc"]
    credential = WebIdentity(proxy_file=told["proxy"], authorities=told["authority"])
    found = await find(credential, servers.url("top"))
    assert {(each.site, each.name) for each in found.elements} == {
        ("localhost", name) for name in told["queues"]
    }
    assert {each.glue.contact for each in found.elements} == {told["url"]}
    assert [each.outcome for each in found.visits] == ["answered", "answered", "answered", "failed"]


async def test_our_token_is_shown_to_hosts_that_may_see_it_alone(
    testbed: Sites, servers: IndexServers
) -> None:
    told = testbed.told["arc"]
    known = {"token_file": told["token"], "authorities": told["authority"]}
    assert (await find(WebIdentity(**known), servers.url("nordic"), token_hosts=["localhost"])).elements
    strange = await find(WebIdentity(**known), servers.url("nordic"), token_hosts=["*.example.org"])
    assert not strange.elements
    assert strange.visits[1].outcome == "failed"


async def test_who_is_not_vouched_for_is_not_believed(testbed: Sites, servers: IndexServers) -> None:
    found = await find(WebIdentity(proxy_file=testbed.told["arc"]["proxy"]), servers.url("nordic"))
    assert not found.elements
    assert "certificate" in found.visits[1].why.lower()


async def test_what_an_element_publishes_can_be_kept_as_an_index(testbed: Sites, tmp_path: Path) -> None:
    told = testbed.told["arc"]
    web = Web(WebIdentity(proxy_file=told["proxy"], authorities=told["authority"]))
    document = await web._fetch(address(told["url"], "element"), f"{told['url']}/rest/1.0/info")
    (tmp_path / "site.xml").write_bytes(document)
    found = await find(WebIdentity(), (tmp_path / "site.xml").as_uri())
    assert {each.name for each in found.elements} == set(told["queues"])
    assert [each.outcome for each in found.visits] == ["answered"], (
        "it leads to nobody who would have to be asked"
    )
    assert read_index(document, "file:///x").elements == found.elements


async def test_a_found_element_is_advertised_for_those_it_lets_in(
    testbed: Sites, servers: IndexServers
) -> None:
    told = testbed.told["arc"]
    voice = Principal(
        kind="site", owner="i", group="", vo="", sites=frozenset({"nordic"}), token_id="t", expires_at=0
    )

    async def advertised(vo: str) -> dict[str, tuple[str, tuple[str, ...]]]:
        settings = IndexSettings(
            urls=[servers.url("top")],
            sites={"localhost": "nordic"},
            hosts=["127.0.0.1", "localhost"],
            proxy_file=told["proxy"],
            authorities=told["authority"],
            for_whom=[AdmittedIdentity(vo=vo)],
        )
        indexes = Indexes(settings, KafkaSettings(), lambda: voice)
        try:
            return {each.offer.ce: (each.offer.site, each.offer.vos) for each in await indexes.read()}
        finally:
            await indexes.close()

    assert await advertised("testbed") == dict.fromkeys(told["queues"], ("nordic", ("testbed",)))
    assert await advertised("atlas") == {}
