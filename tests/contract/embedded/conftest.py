"""A system without services, for the tests of one module."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from wms.embedded.system import System

# The servers, the schema and the keys; the services have tests of their own.
BARE: tuple[str, ...] = ()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(quick_dir: Path) -> AsyncIterator[System]:
    async with System(quick_dir / "a system", durable=False, services=BARE) as each:
        yield each
