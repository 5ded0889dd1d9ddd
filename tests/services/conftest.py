"""A world for each test, and what several tests have in it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from services.pilot_submitter.ce_endpoints import CeEndpoints
from services.pilot_submitter.ce_health import HealthJudge
from tests.services.elements import TERMS, Place
from tests.services.pilot_submitter.elements import Site
from tests.services.private import Grounds
from tests.services.world import World, world
from wms.audit.auditor import audit
from wms.dispatch.local import LocalDispatcher
from wms.site import ComputingElement


@pytest_asyncio.fixture(loop_scope="session")
async def the_world(database: str) -> AsyncIterator[World]:
    async with world(database) as each:
        yield each


@pytest_asyncio.fixture(loop_scope="session")
async def place(the_world: World, tmp_path: Any) -> AsyncIterator[Place]:
    for ce in ("good", "hole"):
        element = ComputingElement(site="A", ce=ce, slots=8, max_cpu_time=10**6, setup="default")
        await the_world.sql(
            "insert into ad (site, ce, element, advertised_at, expires_at)"
            " values ('A', $1, $2::text::jsonb, now(), now() + interval '1 h')",
            *(ce, msgspec.json.encode(element).decode()),
        )
    endpoints = CeEndpoints(LocalDispatcher(tmp_path, ["true"], {}), lambda: 0.0, local_sites=["*"])
    yield Place(the_world, HealthJudge(the_world.db, endpoints, TERMS))
    report = await audit(the_world.url)
    assert report.ok, report.text(brief=True)


@pytest.fixture
async def grounds(the_world: World, tmp_path: Path) -> Grounds:
    found = Grounds(Site(the_world, tmp_path))
    await found.advertise()
    return found
