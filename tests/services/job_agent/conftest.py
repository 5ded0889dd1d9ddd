"""The workplace of a pilot without isolation, for tests that need no other one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from services.job_agent.payload.workplace import Workplace
from wms.ids import PilotId, SiteName
from wms.transfer import open_store


@pytest_asyncio.fixture(loop_scope="session")
async def workplace(tmp_path: Path) -> AsyncIterator[Workplace]:
    store = open_store(f"file://{tmp_path / 'store'}")
    async with Workplace(
        root=tmp_path / "run", store=store, site=SiteName("S"), pilot_id=PilotId("p")
    ) as each:
        yield each
