"""A site of each test's own."""

import pytest_asyncio

from tests.services.agreement.site import Site
from tests.services.world import World


@pytest_asyncio.fixture(loop_scope="session")
async def site(the_world: World) -> Site:
    return Site(the_world)
