"""Index servers, and a clock that tests set."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.services.discovery.index_servers import IndexServers, index_servers
from tests.services.discovery.questions import Clock


@pytest_asyncio.fixture(loop_scope="session")
async def servers() -> AsyncIterator[IndexServers]:
    async with index_servers() as running:
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock()
