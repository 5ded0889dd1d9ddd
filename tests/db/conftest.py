"""A database of the test's own, a transaction in it, roles for it, and a world of services over it."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.db.role_server import RoleServer, with_roles
from tests.services.world import World, world
from wms.db.database import Database, Transaction


@pytest_asyncio.fixture(loop_scope="session")
async def the_world(database: str) -> AsyncIterator[World]:
    async with world(database) as each:
        yield each


@pytest_asyncio.fixture(loop_scope="session")
async def db(database: str) -> AsyncIterator[Database]:
    each = await Database.connect(database, size=4, ready=1, application="test")
    yield each
    await each.close()


@pytest_asyncio.fixture(loop_scope="session")
async def tx(db: Database) -> AsyncIterator[Transaction]:
    async with db.transaction() as each:
        yield each


@pytest_asyncio.fixture(loop_scope="session")
async def role_server(database: str) -> AsyncIterator[RoleServer]:
    async with with_roles(database) as each:
        yield each
