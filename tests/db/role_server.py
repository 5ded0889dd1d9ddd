"""A database whose roles were made, under names of the test's own."""

import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

from tests.conftest import execute
from wms.db.roles import ROLES, write_roles


class RoleServer(NamedTuple):
    """A database whose roles were made."""

    owner: str
    """The URL of the owner of the schema."""
    prefix: str
    passwords: Mapping[str, str]

    def url(self, role: str) -> str:
        """Return the URL of a role."""
        parts = urlsplit(self.owner)
        place = parts.netloc.rpartition("@")[2]
        return urlunsplit(parts._replace(netloc=f"{self.prefix}{role}:{self.passwords[role]}@{place}"))


@contextlib.asynccontextmanager
async def with_roles(database: str) -> AsyncIterator[RoleServer]:
    """Make the roles in a database, and drop them afterwards: they belong to the whole server."""
    prefix = f"t{os.getpid()}_"
    passwords = {each: secrets.token_urlsafe(12) for each in ROLES}
    await write_roles(database, prefix=prefix, passwords=passwords)
    yield RoleServer(database, prefix, passwords)
    for each in ROLES:
        await execute(database, f"drop owned by {prefix}{each}; drop role {prefix}{each}")
