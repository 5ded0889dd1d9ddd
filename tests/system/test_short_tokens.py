"""Tokens live for a short time, and whoever works on gets new ones: tools, services and pilots outlive their first tokens."""

from pathlib import Path

import asyncpg
import pytest

from tests.waiting import eventually
from wms.client import Client, JobDescription
from wms.client.credential import TokenFile
from wms.embedded.system import System
from wms.runtime import clock


@pytest.mark.slow
async def test_a_system_outlives_its_first_tokens(tmp_path: Path, database: str) -> None:
    pilots = {"token_seconds": 4.0}
    async with (
        System(tmp_path / "own", postgres=database, slots=1, token_seconds=4.0, pilots=pilots) as system,
        Client.connect(system.layout.root, timeout=60) as client,
    ):
        file = TokenFile(system.layout.user_token)
        first = file.read(clock.timestamp())
        # The pilot has a job in hand, and has not spoken, when its first token ends.
        long = JobDescription(executable="sleep", arguments=("8",))
        submitted = await client.submit([long, JobDescription(executable="true")])
        assert await client.wait(submitted.selector(), timeout=60) == {"Done": 2}
        assert clock.timestamp() > first.expires_at
        assert file.read(clock.timestamp()).expires_at > first.expires_at
        assert system.facts is not None
        connection = await asyncpg.connect(system.facts.postgres_url)
        try:
            rows = await connection.fetch(
                "select jobs_done, extract(epoch from token_until - started_at)::float8 as covered from pilot where jobs_done > 0"
            )
        finally:
            await connection.close()
        # One pilot did both, and spoke with a token that ends later than its first could.
        assert [row["jobs_done"] for row in rows] == [2]
        assert rows[0]["covered"] > 8
        # Ads go on to be believed.
        await eventually(lambda: _is_advertised(system), 30)


async def _is_advertised(system: System) -> bool:
    assert system.facts is not None
    connection = await asyncpg.connect(system.facts.postgres_url)
    try:
        return bool(await connection.fetchval("select exists (select from ad where expires_at > now())"))
    finally:
        await connection.close()
