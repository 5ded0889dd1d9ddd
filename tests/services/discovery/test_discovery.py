"""Discovery through real index servers: slow, dead, looping and hostile ones among them."""

import asyncio
import socket

import pytest

from tests.services.discovery.index_servers import ARC_XML, Held, IndexServers, queue
from tests.services.discovery.questions import Clock, discovery, outcomes, sites
from wms.discovery.address import address
from wms.discovery.discovery import DiscoveryLimits

pytestmark = pytest.mark.asyncio(loop_scope="session")


SOON = DiscoveryLimits(whole_seconds=0.3, server_seconds=60.0)


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
