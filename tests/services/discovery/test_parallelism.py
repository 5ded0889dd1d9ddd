"""How many servers are asked at a time."""

import asyncio

from tests.services.discovery.index_servers import Held, IndexServers, queue
from tests.services.discovery.questions import Clock, discovery, outcomes, sites
from wms.discovery.discovery import DiscoveryLimits


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
