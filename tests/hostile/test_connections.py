"""Connections that do nothing keep no service from the database or the broker."""

import asyncio
import contextlib

import asyncpg

from tests.hostile.innocent import Innocent
from tests.hostile.target import Target

CONNECTIONS = 150


async def test_idle_connections_of_tools_leave_the_services_theirs(
    target: Target, innocent: Innocent
) -> None:
    assert target.system.facts is not None
    url = target.system.facts.postgres_url_of("tools")
    idle: list[asyncpg.Connection] = []
    try:
        # As many as a tool may have are let in, so that only part of an innocent's own tools wait.
        for _ in range(CONNECTIONS):
            with contextlib.suppress(asyncpg.TooManyConnectionsError, asyncpg.PostgresError):
                idle.append(await asyncpg.connect(url, timeout=10))
        assert 10 < len(idle) < CONNECTIONS
        # The probes of `wms status` are a tool, too.
        for each in idle[:20]:
            await each.close()
        async with innocent.beside():
            connection = await asyncpg.connect(target.database, timeout=10)
            await connection.close()
    finally:
        await asyncio.gather(*(each.close() for each in idle))
