"""One system for all attacks, with short leases, so that one that is not renewed in time is lost within the test."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.chaos.run import quick_system
from tests.hostile.innocent import Innocent
from tests.hostile.loops import kept_free
from tests.hostile.target import Target, attacked
from wms.audit import audit
from wms.client import Client


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder."""
    for item in items:
        if "hostile" in item.nodeid.split("/"):
            item.add_marker(pytest.mark.hostile)
            item.add_marker(pytest.mark.timeout(300))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Target]:
    """Yield a running system; after the last attack its audit must hold."""
    root = tmp_path_factory.mktemp("hostile")
    async with quick_system(root, isolation="auto") as system, attacked(system) as target:
        yield target
        report = await audit(target.database)
    assert report.ok, report.text()


@pytest_asyncio.fixture(loop_scope="session")
async def target(running: Target) -> AsyncIterator[Target]:
    """Yield the system for one attack, which may neither keep a service's event loop nor end a service."""
    async with kept_free(running):
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def innocent(running: Target) -> AsyncIterator[Innocent]:
    """Yield the user whose jobs run beside each attack, with what they usually take."""
    async with Client.connect(running.settings(Innocent.owner)) as client:
        innocent = Innocent(client, running)
        await innocent.learn_usual()
        yield innocent
