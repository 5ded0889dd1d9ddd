"""Five hundred jobs in pilots whose nodes reach the gateway alone, which is killed midway: all end Done, and none runs twice."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from deploy.testbed.closed_network import ClosedNetwork
from tests.middleware import Sites, a_closed_testbed
from tests.testbed.closed_system import HIDDEN, KINDS, closed_system
from tests.testbed.everywhere import rows
from tests.waiting import eventually
from wms.audit import audit
from wms.client import Client, JobDescription
from wms.embedded.system import System

pytestmark = [pytest.mark.testbed, pytest.mark.long, pytest.mark.timeout(600)]

JOBS_AT_EACH, JOBS_ANYWHERE = 160, 180
KILL_AFTER = (100, 300)
"""How many jobs have run when the gateway is killed."""
# The network in which it runs is the payload's own word, in a file that no service sees.
PAYLOAD = "readlink /proc/self/ns/net >> $0/$WMS_JOB_ID; sleep 0.$(( $1 % 10 ))"
ATTEMPTS = """select job_id, epoch, pilot_id, site, accepted_at, started_at, ended_at, outcome, reason, reason_text from attempt
where job_id = any ($1::bigint[]) order by job_id, epoch"""
LOOK = """
import json, os, socket, sys
found = {}
for address in sys.argv[2:]:
    host, _, port = address.rpartition(":")
    sock = socket.socket(socket.AF_INET if host else socket.AF_UNIX)
    sock.settimeout(3)
    try:
        sock.connect((host, int(port)) if host else address)
        found[address] = "reached"
    except OSError as error:
        found[address] = type(error).__name__
print(json.dumps({"files": os.listdir(sys.argv[1]), "addresses": found}))
"""
"""Prints which of some addresses are reached, and what is in a directory."""


@pytest.fixture(scope="module")
def closed() -> Iterator[Sites]:
    with a_closed_testbed(HIDDEN) as testbed:
        yield testbed


@pytest.fixture(scope="module")
def network(closed: Sites) -> ClosedNetwork:
    return ClosedNetwork(closed.root)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(closed: Sites, network: ClosedNetwork) -> AsyncIterator[System]:
    async with closed_system(closed, network) as running:
        yield running


async def test_nodes_reach_the_gateway_and_neither_servers_nor_files_of_the_system(
    system: System, closed: Sites, network: ClosedNetwork
) -> None:
    assert system.facts is not None
    assert system.broker is not None
    assert system.postgres is not None
    gateway = urlsplit(str(system.facts.pilots["sandboxes_url"])).netloc
    broker = system.broker.bootstrap
    (database,) = system.postgres.sockets.glob(".s.PGSQL.*[0-9]")
    elsewhere = [f"{host}:{broker.rpartition(':')[2]}" for host in (network.host, *_own_addresses())]
    program = closed.root / "look.py"
    program.write_text(LOOK)
    asked = [str(program), str(closed.root / HIDDEN), gateway, broker, str(database), *elsewhere]

    def look() -> Any:
        return json.loads(subprocess.run([sys.executable, *asked], capture_output=True, check=True).stdout)

    await eventually(lambda: look()["addresses"][gateway] == "reached", 60)
    here = look()
    assert {each for each, said in here["addresses"].items() if said == "reached"} >= set(asked[2:5])
    assert here["files"]

    out = closed.root / "looked"
    line = " ".join([f"{closed.root}/python", *asked])
    closed.run("alpha", "sbatch", "--wait", "-o", str(out), "--wrap", line)
    inside = json.loads(out.read_text())
    assert {each for each, said in inside["addresses"].items() if said == "reached"} == {gateway}
    assert inside["files"] == []


async def test_five_hundred_jobs_end_done_and_none_runs_twice_though_the_gateway_is_killed(
    system: System, closed: Sites, network: ClosedNetwork
) -> None:
    assert system.facts is not None
    url = system.facts.postgres_url
    runs = closed.root / "runs"
    runs.mkdir()
    runs.chmod(0o777)
    async with Client.connect(system.layout.root, timeout=60) as client:
        submitted = await client.submit(
            [*(_described(runs, JOBS_AT_EACH, site) for site in KINDS), _described(runs, JOBS_ANYWHERE)]
        )
        for wanted in KILL_AFTER:
            await eventually(partial(_have_run, runs, wanted), within=180)
            pid = system.supervisor.pid_of("gateway")
            assert pid
            os.kill(pid, signal.SIGKILL)
        counts = await client.wait(submitted.selector(), timeout=240)
    jobs = JOBS_AT_EACH * len(KINDS) + JOBS_ANYWHERE
    assert counts == {"Done": jobs}
    words = {path.name: path.read_text().split() for path in runs.iterdir()}
    assert len(words) == jobs
    strange = {int(job): said for job, said in words.items() if said != [f"net:[{network.inode}]"]}
    assert not strange, (strange, await rows(url, ATTEMPTS, list(strange)))
    pilots = await rows(url, "select site, link, sum(jobs_done) as done from pilot group by site, link")
    assert {(each["site"], each["link"]) for each in pilots} == {(site, "gateway") for site in KINDS}
    assert all(each["done"] for each in pilots)
    report = await audit(url)
    assert report.ok, report.text(brief=True)


def _described(runs: Path, count: int, *sites: str) -> JobDescription:
    return JobDescription(
        executable="/bin/sh",
        arguments=("-c", PAYLOAD, str(runs), "{n}"),
        sites=sites,
        cpu_time=60,
        array=count,
    )


def _have_run(runs: Path, jobs: int) -> bool:
    return len(list(runs.iterdir())) >= jobs


def _own_addresses() -> list[str]:
    """Return the address by which this machine is known elsewhere, if it is known anywhere."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            # Nothing is sent: the kernel says from which address it would be.
            sock.connect(("192.0.2.1", 9))
        except OSError:
            return []
        return [sock.getsockname()[0]]
