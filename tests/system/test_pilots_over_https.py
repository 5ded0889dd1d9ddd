"""A whole system whose pilots reach the services through the gateway alone, which is killed while they work."""

import os
import signal
import statistics
import sys
import time
from collections.abc import AsyncIterator, Iterable
from functools import partial
from pathlib import Path

import aiohttp
import asyncpg
import msgspec
import pytest
import pytest_asyncio

from tests.waiting import eventually
from wms.audit.auditor import audit
from wms.client import Client, JobDescription, select
from wms.dispatch.local import OWN
from wms.embedded.system import System


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    root = tmp_path_factory.mktemp("https")
    pilots = {"idle_seconds": 60.0}
    async with System(root, slots=4, durable=False, pilots=pilots) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def client(system: System) -> AsyncIterator[Client]:
    async with Client.connect(system.layout.root, timeout=30) as made:
        yield made


def _has_run(mark: Path, jobs: int) -> bool:
    return len(list(mark.iterdir())) >= jobs


def _is_written(path: Path) -> bool:
    return path.exists() and bool(path.read_text().strip())


async def _attempts(url: str, job_ids: Iterable[int]) -> int:
    connection = await asyncpg.connect(url)
    try:
        count = "select count(*) from attempt where job_id = any ($1)"
        return int(await connection.fetchval(count, list(job_ids)))
    finally:
        await connection.close()


def configurations(system: System) -> list[str]:
    return [path.read_text() for path in system.layout.pilots.glob(f"*/{OWN}/config.toml")]


async def test_jobs_run_in_pilots_that_know_nothing_of_the_broker(system: System, client: Client) -> None:
    taken = await client.submit(JobDescription(executable="/bin/echo", arguments=("hello",), array=20))
    assert await client.wait(taken.selector(), timeout=90) == {"Done": 20}
    texts = configurations(system)
    assert texts
    for text in texts:
        assert "[gateway]" in text
        assert "kafka" not in text
        assert str(system.broker.bootstrap if system.broker else "") not in text
    assert {each.link for each in await client.pilots()} == {"gateway"}


async def test_a_secret_is_of_no_use_once_the_pilot_has_its_token(system: System) -> None:
    assert system.facts is not None
    connection = await asyncpg.connect(system.facts.postgres_url)
    rows = await connection.fetch("select exchange_id, exchanged_at from pilot_secret")
    await connection.close()
    assert rows
    assert all(row["exchanged_at"] for row in rows)
    assert not list(Path(system.layout.pilots).glob("*/token"))


async def test_nothing_is_lost_or_done_twice_when_the_gateway_is_killed_midway(
    system: System, client: Client, tmp_path: Path
) -> None:
    mark = tmp_path / "runs"
    mark.mkdir(mode=0o777)
    script = f"echo x >> {mark}/$0; sleep 0.3"
    taken = await client.submit(
        JobDescription(executable="/bin/sh", arguments=("-c", script, "{n}"), array=60)
    )
    for wanted in (10, 30):
        await eventually(partial(_has_run, mark, wanted), within=60)
        pid = system.supervisor.pid_of("gateway")
        assert pid
        os.kill(pid, signal.SIGKILL)
    assert await client.wait(taken.selector(), timeout=120) == {"Done": 60}
    assert system.facts is not None
    runs = [path.read_text().count("x") for path in mark.iterdir()]
    assert len(runs) == 60
    # What ran again did so in an attempt of its own: a slow restart may outlast a lease, and the auditor sees that none overlap.
    assert sum(runs) <= await _attempts(system.facts.postgres_url, taken.job_ids())
    report = await audit(system.facts.postgres_url)
    assert report.ok, report.text(brief=True)


ASKS = f"""
import json, os, subprocess
def asked(job_id):
    wms = [{sys.executable!r}, "-m", "wms.cli", "show", str(job_id), "--json"]
    done = subprocess.run(wms, capture_output=True, text=True)
    return done.returncode, done.stdout or done.stderr
mine = int(os.environ["WMS_JOB_ID"])
code, shown = asked(mine)
print(json.dumps([code, json.loads(shown)["job"]["job_id"], *asked(mine - 1), open(os.environ["WMS_TOKEN"]).read()]))
"""


async def test_a_payload_reads_its_own_job_until_it_ends(system: System, client: Client) -> None:
    await client.submit(JobDescription(executable="/bin/true"))
    taken = await client.submit(JobDescription(executable=sys.executable, arguments=("-c", ASKS)))
    (job_id,) = taken.job_ids()
    await client.wait(taken.selector(), timeout=90)
    printed = (await client.peek(job_id)).text
    code, shown, other_code, refused, token = msgspec.json.decode(printed)
    assert (code, shown) == (0, job_id)
    assert other_code == 3
    assert "a payload reads its own job" in refused
    headers = {"Authorization": f"Bearer {token.strip()}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(f"{system.gateway_url}/api/v1/jobs/{job_id}") as answer,
    ):
        assert (answer.status, (await answer.json())["code"]) == (403, "NOT_HELD")


async def test_running_jobs_are_killed_within_a_second(
    system: System, client: Client, tmp_path: Path
) -> None:
    took = []
    for number in range(12):
        mark = tmp_path / str(number)
        taken = await client.submit(
            JobDescription(executable="/bin/sh", arguments=("-c", f"echo $$ > {mark}; exec sleep 600"))
        )
        await eventually(partial(_is_written, mark), within=60)
        began = time.monotonic()
        await client.kill(select([str(each) for each in taken.job_ids()]))
        assert await client.wait(taken.selector(), timeout=30) == {"Killed": 1}
        took.append(time.monotonic() - began)
    if os.environ.get("WMS_SHOW_FIGURES"):
        print(
            f"killed within {statistics.median(took):.3f} s (median), {max(took):.3f} s (most of {len(took)})"
        )
    # One of them may meet a moment in which the machine does something else.
    assert sorted(took)[-2] < 1.0
