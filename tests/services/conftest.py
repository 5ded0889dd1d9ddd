"""A world for each test."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.services.world import World, world


@pytest_asyncio.fixture(loop_scope="session")
async def the_world(database: str) -> AsyncIterator[World]:
    async with world(database) as each:
        yield each
