"""Pilots that are started from the agent's one file, by a bare Python, and reach services and files through the gateway alone."""

import os
import shutil
import signal
import sys
import tomllib
from pathlib import Path

import msgspec
import psutil
import pytest

from deploy.agent_file.build import build
from tests.waiting import eventually
from wms.client import Client, JobDescription
from wms.dispatch.agent_file import SHARED
from wms.dispatch.local import OWN
from wms.embedded.system import System
from wms.files import Table
from wms.job.state import State

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TREE = Path(__file__).parents[2]
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
BARE = os.path.realpath(sys.executable)
"""The Python around which the virtual environment of the tests was made, and which has none of its libraries."""
JOB = JobDescription(
    executable="/bin/sh",
    arguments=("-c", "cat given; tr a-z A-Z < given > out.txt; head -c 3000000 /dev/urandom > big.bin"),
    output_sandbox=("out.txt", "big.bin"),
)

LATE = JobDescription(
    executable="/bin/sh", arguments=("-c", "sleep 3; echo late > out.txt"), output_sandbox=("out.txt",)
)


@pytest.fixture(scope="module")
def agent_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("built") / "wms-agent.pyz"
    build(TREE, to, TREE / ".cache" / "agent_file", [HERE])
    return to


async def test_jobs_run_by_pilots_that_have_one_file_and_http(
    tmp_path: Path, database: str, agent_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WMS_AGENT_CACHE", str(tmp_path))
    root = tmp_path / "own"
    pilots: Table = {"agent_file": str(agent_file), "python": BARE, "idle_seconds": 300.0}
    async with (
        System(root, postgres=database, slots=2, pilots=pilots) as system,
        Client.connect(system.layout.root, timeout=120) as client,
    ):
        given = await client.upload({"given": b"hello from afar\n"})
        submitted = await client.submit([msgspec.structs.replace(JOB, input_sandbox=(given,))] * 6)
        assert await client.wait(submitted.selector(), timeout=120) == {"Done": 6}
        for job_id in submitted.job_ids():
            await client.output(job_id, tmp_path / "out" / str(job_id))
            assert (tmp_path / "out" / str(job_id) / "out.txt").read_bytes() == b"HELLO FROM AFAR\n"
            assert (tmp_path / "out" / str(job_id) / "big.bin").stat().st_size == 3_000_000
        for place in system.layout.pilots.iterdir():
            if place.name != SHARED:
                config = tomllib.loads((place / OWN / "config.toml").read_text())
                assert config["sandboxes"]["url"] == config["gateway"]["url"]
                assert "kafka" not in config
        (pilot,) = agents(root)
        assert pilot[:2] == [BARE, "-I"]
        assert Path(pilot[2]).read_bytes() == agent_file.read_bytes()

        # The gateway is away while jobs end: their outputs arrive all the same.
        late = await client.submit(LATE)
        (job_id,) = late.job_ids()
        await eventually(lambda: runs(client, job_id), 60)
        pid = system.supervisor.pid_of("gateway")
        assert pid
        os.kill(pid, signal.SIGKILL)
        assert await client.wait(late.selector(), timeout=120) == {"Done": 1}
        await client.output(job_id, tmp_path / "late")
        assert (tmp_path / "late" / "out.txt").read_bytes() == b"late\n"
    shutil.rmtree(tmp_path / f"wms-agent-{os.getuid()}")


async def runs(client: Client, job_id: int) -> bool:
    """Return whether a job runs."""
    return (await client.show(job_id)).job.state == State.RUNNING


def agents(root: Path) -> list[list[str]]:
    """Return the command lines of the agents that run from below this directory."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if len(line) > 2 and line[2].startswith(str(root)) and line[2].endswith(".pyz"):
            found.append(line)
    return found
