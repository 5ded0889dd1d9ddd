"""Discovery through real index servers: slow, dead, looping and hostile ones among them."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web

from tests.services.discovery.index_servers import ARC_XML, Held, IndexServers, index_servers, queue
from wms.discovery.address import address
from wms.discovery.discovery import Discovery, DiscoveryLimits
from wms.discovery.document import SIZE_LIMIT
from wms.discovery.file import FileSource
from wms.discovery.http import Web
from wms.discovery.memory import CacheLifetimes
from wms.discovery.port import Source
from wms.discovery.walk import Found
from wms.web import WebIdentity

pytestmark = pytest.mark.asyncio(loop_scope="session")

SOON = DiscoveryLimits(whole_seconds=0.3, server_seconds=60.0)
LONG = DiscoveryLimits(whole_seconds=30.0, server_seconds=30.0)


class Clock:
    """Monotonic time as the test says."""

    def __init__(self) -> None:
        self.at = 1_000.0

    def __call__(self) -> float:
        return self.at


@pytest_asyncio.fixture(loop_scope="session")
async def servers() -> AsyncIterator[IndexServers]:
    async with index_servers() as running:
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock()


def discovery(clock: Clock, pace: DiscoveryLimits = LONG, terms: CacheLifetimes | None = None) -> Discovery:
    sources: dict[str, Source] = {"http": Web(WebIdentity()), "file": FileSource()}
    return Discovery(sources, pace=pace, terms=terms, clock=clock, rng=lambda: 0.0)


def sites(found: Found) -> list[str]:
    return [each.site for each in found.elements]


def outcomes(found: Found) -> dict[str, str]:
    return {each.url.rpartition("/")[2]: each.outcome for each in found.visits}


async def test_a_hierarchy_is_walked_each_server_asked_once(servers: IndexServers, clock: Clock) -> None:
    servers.lists("top", indexes=("nordic", "east", "top"))
    servers.lists("nordic", indexes=("sweden", "top"), elements=("arex",))
    servers.lists("east", indexes=("nordic", "sweden"))
    servers.describes("sweden", "umea")
    servers.answers["arex/rest/1.0/info"] = ARC_XML
    async with discovery(clock) as finder:
        found = await finder.find([servers.index("top")])
    assert sites(found) == ["umea", "127.0.0.1", "127.0.0.1"]
    assert set(servers.asked.values()) == {1}
    assert set(outcomes(found).values()) == {"answered"}
    assert {each.by.rpartition("/")[2] for each in found.visits} == {"", "top", "nordic"}


async def test_servers_are_asked_side_by_side(servers: IndexServers, clock: Clock) -> None:
    held = [Held(queue(f"site-{n}")) for n in range(5)]
    servers.lists("top", indexes=tuple(f"i{n}" for n in range(5)))
    servers.answers |= {f"i{n}": each for n, each in enumerate(held)}
    async with discovery(clock) as finder:
        finding = asyncio.create_task(finder.find([servers.index("top")]))
        async with asyncio.timeout(20):
            await asyncio.gather(*(each.asked.wait() for each in held))
        for each in reversed(held):
            each.let_go.set()
        assert sites(await finding) == [f"site-{n}" for n in range(5)]


async def test_no_more_are_asked_at_a_time_than_may_be(servers: IndexServers, clock: Clock) -> None:
    held = Held(queue("first"))
    servers.answers |= {f"i{n}": held for n in range(9)}
    pace = DiscoveryLimits(
        servers_at_once=3, slow_servers_at_once=2, slow_after_seconds=0.05, whole_seconds=0.6
    )
    servers.lists("top", indexes=tuple(f"i{n}" for n in range(9)))
    async with discovery(clock, pace) as finder:
        found = await finder.find([servers.index("top")])
        assert sum(servers.asked.values()) == 1 + 3 + 2
        assert list(outcomes(found).values()).count("late") == 9


async def test_a_slow_server_steps_aside_for_others(servers: IndexServers, clock: Clock) -> None:
    slow = Held(queue("slow"))
    quick = Held(queue("quick"))
    servers.answers |= {"slow": slow, "quick": quick}
    pace = DiscoveryLimits(servers_at_once=1, slow_after_seconds=0.05, whole_seconds=30.0)
    async with discovery(clock, pace) as finder:
        finding = asyncio.create_task(finder.find([servers.index("slow"), servers.index("quick")]))
        async with asyncio.timeout(20):
            await asyncio.gather(slow.asked.wait(), quick.asked.wait())
        slow.let_go.set()
        quick.let_go.set()
        assert sorted(sites(await finding)) == ["quick", "slow"]


async def test_many_dead_servers_hold_up_nobody(servers: IndexServers, clock: Clock) -> None:
    dead = Held()
    servers.answers |= {f"dead-{n}": dead for n in range(12)}
    servers.answers |= {f"live-{n}": queue(f"live-{n}") for n in range(12)}
    servers.lists("top", indexes=tuple(f"{kind}-{n}" for kind in ("dead", "live") for n in range(12)))
    pace = DiscoveryLimits(servers_at_once=4, slow_after_seconds=0.02, whole_seconds=2.0)
    async with discovery(clock, pace) as finder:
        found = await finder.find([servers.index("top")])
    assert sites(found) == [f"live-{n}" for n in range(12)]
    assert [each.outcome for each in found.visits[1:13]] == ["late"] * 12


async def test_a_server_that_is_late_is_told_and_there_the_next_time(
    servers: IndexServers, clock: Clock
) -> None:
    slow = Held(queue("slow"))
    servers.answers["slow"] = slow
    servers.describes("quick", "quick")
    roots = [servers.index("slow"), servers.index("quick")]
    async with discovery(clock, SOON) as finder:
        found = await finder.find(roots)
        assert (sites(found), outcomes(found)) == (["quick"], {"slow": "late", "quick": "answered"})
        assert [each.url for each in found.unheard] == [roots[0].url]
        flight = finder.flight(roots[0])
        slow.let_go.set()
        await flight
        found = await finder.find(roots)
        assert outcomes(found) == {"slow": "remembered", "quick": "remembered"}
        assert servers.asked["slow"] == 1


async def test_who_is_silent_too_long_fails_and_is_left_alone(servers: IndexServers, clock: Clock) -> None:
    servers.answers["slow"] = Held()
    root = servers.index("slow")
    async with discovery(clock, DiscoveryLimits(server_seconds=0.05, whole_seconds=30.0)) as finder:
        [visit] = (await finder.find([root])).visits
        assert (visit.outcome, visit.why) == ("failed", "no answer within 0.05 s")
        clock.at += 29
        [visit] = (await finder.find([root])).visits
        assert (visit.outcome, servers.asked["slow"]) == ("resting", 1)
        clock.at += 1
        await finder.find([root])
        assert servers.asked["slow"] == 2


async def test_a_dead_server_is_told_and_holds_up_nobody(servers: IndexServers, clock: Clock) -> None:
    with socket.socket() as closed, socket.socket() as deaf:
        closed.bind(("127.0.0.1", 0))
        # Takes connections and says nothing.
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        roots = [address(f"http://127.0.0.1:{each.getsockname()[1]}/", "index") for each in (closed, deaf)]
        servers.describes("quick", "quick")
        async with discovery(clock, SOON) as finder:
            found = await finder.find([*roots, servers.index("quick")])
    assert sites(found) == ["quick"]
    assert [each.outcome for each in found.visits] == ["failed", "late", "answered"]


async def test_answers_are_asked_for_again_after_their_time_and_stand_in_meanwhile(
    servers: IndexServers, clock: Clock
) -> None:
    servers.describes("i", "before")
    root = servers.index("i")
    async with discovery(clock, DiscoveryLimits(patience_seconds=0.0, whole_seconds=30.0)) as finder:
        await finder.find([root])
        clock.at += 29
        assert outcomes(await finder.find([root])) == {"i": "remembered"}
        clock.at += 1
        held = Held(queue("after"))
        servers.answers["i"] = held
        found = await finder.find([root])
        assert (sites(found), outcomes(found)) == (["before"], {"i": "stale"}), "though it has not answered"
        assert found.visits[0].age_seconds == 30
        flight = finder.flight(root)
        held.let_go.set()
        await flight
        assert sites(await finder.find([root])) == ["after"]
        assert servers.asked["i"] == 2


async def test_who_has_patience_gets_the_new_answer(servers: IndexServers, clock: Clock) -> None:
    servers.describes("i", "before")
    root = servers.index("i")
    async with discovery(clock, DiscoveryLimits(patience_seconds=30.0, whole_seconds=30.0)) as finder:
        await finder.find([root])
        servers.describes("i", "after")
        clock.at += 60
        assert sites(await finder.find([root])) == ["after"]


async def test_many_who_ask_at_once_ask_a_server_once(servers: IndexServers, clock: Clock) -> None:
    held = Held(queue("x"))
    servers.answers["i"] = held
    async with discovery(clock) as finder:
        asking = [asyncio.create_task(finder.find([servers.index("i")])) for _ in range(20)]
        async with asyncio.timeout(20):
            await held.asked.wait()
        held.let_go.set()
        assert {tuple(sites(each)) for each in await asyncio.gather(*asking)} == {("x",)}
    assert servers.asked["i"] == 1


async def test_one_who_gives_up_does_not_end_the_question_for_others(
    servers: IndexServers, clock: Clock
) -> None:
    held = Held(queue("x"))
    servers.answers["i"] = held
    async with discovery(clock) as finder:
        first, second = (asyncio.create_task(finder.find([servers.index("i")])) for _ in range(2))
        async with asyncio.timeout(20):
            await held.asked.wait()
        first.cancel()
        held.let_go.set()
        assert sites(await second) == ["x"]


async def _endless(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    while True:
        await answer.write(b"u=x " * 65_536)


async def _huge(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"Content-Length": str(SIZE_LIMIT + 1)})
    await answer.prepare(request)
    await asyncio.Event().wait()
    return answer


async def _compressed(_: web.Request) -> web.StreamResponse:
    return web.Response(body=b"\x1f\x8b", headers={"Content-Encoding": "gzip"})


async def _elsewhere(_: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("/good")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (_endless, "over 8,388,608 bytes"),
        (_huge, "8,388,609 bytes"),
        (_compressed, "compressed"),
        (_elsewhere, "302"),
        (b"<a><b>", "not XML"),
        (b"<html>busy</html>" * 9, "not XML"),
        (b'{"a":' * 100_000, "nested"),
        (b"\xff" * 1_000, "neither GLUE nor a list"),
    ],
)
async def test_a_hostile_server_is_refused_and_harms_no_other(
    servers: IndexServers, clock: Clock, answer: object, why: str
) -> None:
    servers.answers["bad"] = answer  # type: ignore[assignment] # a column of both kinds
    servers.describes("good", "good")
    async with discovery(clock) as finder:
        found = await finder.find([servers.index("bad"), servers.index("good")])
    assert sites(found) == ["good"]
    assert found.visits[0].outcome == "failed"
    assert why in found.visits[0].why
    assert servers.asked["good"] == 1


async def test_an_index_leads_to_no_files_of_ours(
    servers: IndexServers, clock: Clock, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_bytes(queue("secret"))
    servers.answers["i"] = f"u={(tmp_path / 'secret').as_uri()} t=archery.group".encode()
    async with discovery(clock) as finder:
        found = await finder.find([servers.index("i")])
    assert (sites(found), outcomes(found)) == ([], {"i": "answered", "secret": "refused"})


async def test_an_index_may_be_a_file_and_lead_to_others(
    servers: IndexServers, clock: Clock, tmp_path: Path
) -> None:
    servers.describes("i", "web")
    (tmp_path / "top").write_text(f"u=below%20here t=archery.group\nu={servers.url('i')} t=archery.group\n")
    (tmp_path / "below here").write_bytes(queue("filed"))
    async with discovery(clock) as finder:
        found = await finder.find([address((tmp_path / "top").as_uri(), "index")])
    assert sites(found) == ["filed", "web"]


async def test_a_token_goes_over_no_open_connection(
    servers: IndexServers, clock: Clock, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("secret")
    servers.describes("i", "x")
    credential = WebIdentity(token_file=str(tmp_path / "token"))
    async with Discovery({"http": Web(credential, ["*"])}, clock=clock) as finder:
        assert sites(await finder.find([servers.index("i")])) == ["x"]
    assert "Authorization" not in servers.headers["i"]
