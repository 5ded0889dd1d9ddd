"""A whole system of two sites reserves for jobs: the chosen agreement is confirmed, used and over with its job, the other cancelled."""

import contextlib
import sys
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from tests.waiting import eventually
from wms.audit import audit
from wms.client import Client, JobDescription
from wms.embedded.server import Program
from wms.embedded.system import System
from wms.files import to_toml, write_secret
from wms.jobdesc.preferences import JobPreferences

OTHER = "other"
SLOTS = 2
AGREEMENTS = (
    "select site, state, code, start_at, ends_at, used_at from agreement where job_id = $1 order by site"
)


@contextlib.asynccontextmanager
async def of_other_site(system: System, service: str) -> AsyncIterator[None]:
    """Run one more instance of a service, for a second site on this machine."""
    told = tomllib.loads((system.layout.service(service) / "config.toml").read_text())
    if service == "agreement":
        told["agreement"]["site"] = OTHER
    else:
        told["elements"][0]["site"] = OTHER
    directory = system.layout.root / f"{service}-{OTHER}"
    config = directory / "config.toml"
    write_secret(config, to_toml(told))
    argv = [sys.executable, "-m", f"services.{service}", "--config", str(config)]
    async with Program(directory, name=f"{service}-{OTHER}", argv=argv):
        yield


@contextlib.asynccontextmanager
async def two_sites(root: Path) -> AsyncIterator[tuple[System, asyncpg.Connection]]:
    async with (
        System(root, durable=False, slots=SLOTS, pilots={"local_sites": ["*"]}) as system,
        of_other_site(system, "agreement"),
        of_other_site(system, "advertiser"),
    ):
        assert system.facts is not None
        connection = await asyncpg.connect(system.facts.postgres_url)
        try:
            yield system, connection
        finally:
            await connection.close()


async def reserving(connection: asyncpg.Connection) -> bool:
    """Return whether both sites advertise, pilots can be sent there, and they decide on offers."""
    told = """select count(*) from agreement_element e join ad a using (site, ce)
              where e.told_until > now() and a.pilot_seconds is not null"""
    return bool(await connection.fetchval(told) == 2)


@pytest.mark.timeout(240)
async def test_one_agreement_is_used_and_the_other_cancelled(tmp_path: Path) -> None:
    wanted = JobDescription(executable="/bin/true", cpu_time=60, preferences=JobPreferences())
    async with (
        two_sites(tmp_path) as (system, connection),
        Client.connect(system.layout.root, timeout=60) as client,
    ):
        await eventually(lambda: reserving(connection), within=60)
        submission = await client.submit(wanted)
        assert await client.wait(submission.selector(), timeout=120) == {"Done": 1}
        (job_id,) = submission.job_ids()

        async def over() -> bool:
            states = {row["state"] for row in await connection.fetch(AGREEMENTS, job_id)}
            return not states & {"Requested", "Temporary", "Confirmed"}

        await eventually(over, within=30)
        found = await client.ranking(job_id)
        (placed,) = found.placements
        agreements = {row["site"]: row for row in await connection.fetch(AGREEMENTS, job_id)}
        assert set(agreements) == {"local", OTHER}
        used = agreements.pop(placed.site)
        assert (used["state"], used["code"]) == ("Ended", "JOB_OVER")
        (other,) = agreements.values()
        assert other["state"] == "Cancelled"
        began = await connection.fetchval("select accepted_at from attempt where job_id = $1", job_id)
        assert used["start_at"] <= began < used["ends_at"]
        report = await audit(system.facts.postgres_url if system.facts else "")
        assert report.ok, report.text(brief=True)
