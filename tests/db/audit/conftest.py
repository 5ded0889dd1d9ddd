"""A database in which all that has happened."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.conftest import execute, with_database
from tests.db.audit.life import live
from tests.services.world import world


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def lived(postgres_server: str, template: str) -> AsyncIterator[str]:
    """A database in which all that has happened; nobody changes it for good."""
    name = f"{template}_lived"
    await execute(postgres_server, f"CREATE DATABASE {name} TEMPLATE {template}")
    async with world(with_database(postgres_server, name)) as one:
        await live(one)
    yield with_database(postgres_server, name)
    await execute(postgres_server, f"DROP DATABASE {name} WITH (FORCE)")
