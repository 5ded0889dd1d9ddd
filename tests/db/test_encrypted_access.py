"""Postgres over TLS: a real server that takes nothing else, and services that judge its certificate."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import asyncpg
import pytest
import pytest_asyncio

from deploy.testbed import packages
from deploy.testbed.certificates import Authority
from tests.conftest import execute
from wms.db.database import Database
from wms.db.migrate import check, migrate
from wms.db.roles import ROLES, check_rights, write_roles
from wms.embedded.postgres import Postgres
from wms.embedded.process import free_port
from wms.errors import Unavailable
from wms.files import write_secret

NAME = "localhost"
HBA = "local all wms scram-sha-256\nhostssl all all 127.0.0.1/32 scram-sha-256\n"
"""Its owner comes in by the socket; all others by TLS and a password."""
PASSWORD = "for-tests-alone"


class EncryptedServer(NamedTuple):
    """A server that takes connections over TLS alone, whose certificate names `localhost`."""

    port: int
    authority: Path
    """The file of the authority that issued its certificate."""
    stranger: Path
    """The file of an authority that did not."""

    def url(self, role: str, host: str = NAME, **options: str) -> str:
        """Return the URL of a role, with options of the connection such as `sslmode`."""
        return f"postgresql://wms_{role}:{PASSWORD}@{host}:{self.port}/wms?{urlencode(options)}"

    def verified(self, role: str, host: str = NAME) -> str:
        """Return the URL that judges name and authority of the server, as a service is told."""
        return self.url(role, host, sslmode="verify-full", sslrootcert=str(self.authority))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def encrypted(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EncryptedServer]:
    if lacking := packages.missing(packages.DATABASE):
        pytest.skip(f"POSTGRES WITH TLS NOT TESTED: this machine lacks packages {' '.join(lacking)}")
    place = tmp_path_factory.mktemp("encrypted")
    port = free_port()
    settings = {"listen_addresses": "127.0.0.1", "port": str(port), **_with_certificate(place)}
    binaries = max(Path("/usr/lib/postgresql").glob("*/bin"))
    async with Postgres(place / "server", durable=False, settings=settings, binaries=binaries) as server:
        await execute(f"{server.url}&port={port}", "create database wms")
        owner = f"{server.url_of('wms')}&port={port}"
        await migrate(owner)
        await write_roles(owner, passwords=dict.fromkeys(ROLES, PASSWORD))
        yield EncryptedServer(port, place / "authority.pem", place / "stranger.pem")


def _with_certificate(place: Path) -> dict[str, str]:
    """Write a certificate and who may come in, and return the settings that name these files."""
    issuer = Authority()
    served = issuer.host(NAME)
    (place / "authority.pem").write_bytes(issuer.credential.pem)
    (place / "stranger.pem").write_bytes(Authority().credential.pem)
    (place / "server.pem").write_bytes(served.pem)
    write_secret(place / "server.key", served.key_pem.decode())
    (place / "hba.conf").write_text(HBA)
    return {
        "ssl": "on",
        "ssl_cert_file": str(place / "server.pem"),
        "ssl_key_file": str(place / "server.key"),
        "hba_file": str(place / "hba.conf"),
        "shared_buffers": "32MB",
    }


async def test_a_service_connects_over_tls_under_its_own_role(encrypted: EncryptedServer) -> None:
    url = encrypted.verified("matcher")
    await check(url)
    await check_rights(url, "matcher")
    db = await Database.connect(url, size=1, ready=1, application="test")
    async with db.transaction() as tx:
        found = await tx.fetchrow(
            "select ssl, version, current_user from pg_stat_ssl where pid = pg_backend_pid()"
        )
    await db.close()
    assert found is not None
    assert (found["ssl"], found["current_user"]) == (True, "wms_matcher")
    assert found["version"] in ("TLSv1.2", "TLSv1.3")


async def test_a_server_of_another_name_is_refused(encrypted: EncryptedServer) -> None:
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1"):
        await Database.connect(encrypted.verified("matcher", "127.0.0.1"), size=1)


async def test_a_server_of_another_authority_is_refused(encrypted: EncryptedServer) -> None:
    url = encrypted.url("matcher", sslmode="verify-full", sslrootcert=str(encrypted.stranger))
    with pytest.raises(Unavailable, match="certificate verify failed"):
        await Database.connect(url, size=1)


async def test_without_tls_the_server_lets_nobody_in(encrypted: EncryptedServer) -> None:
    with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError, match=r"no pg_hba\.conf entry"):
        await asyncpg.connect(encrypted.url("matcher", sslmode="disable"))
