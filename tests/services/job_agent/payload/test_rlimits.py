"""Limits that the kernel holds a payload to: they are in force before its first instruction, or it does not begin."""

import asyncio
import itertools
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from services.job_agent.payload import shepherd
from services.job_agent.payload.limit_enforcement import PayloadLimits
from services.job_agent.payload.process_control import NotStarted
from services.job_agent.payload.run import Payload
from services.job_agent.payload.shepherd_messages import SpawnOrder
from services.job_agent.payload.workplace import Workplace
from tests.services.job_agent.payload.processes import ISOLATIONS
from wms.errors import Unavailable
from wms.ids import Epoch, JobId, PilotId, SiteName
from wms.job.reasons import Code
from wms.jobdesc.description import JobDescription
from wms.transfer import open_store

BLOCK = 512
"""Of which the shell counts the size of a file."""
PAYLOADS = 60
_ids = itertools.count(1)

# Fault: whoever starts the program gets no processor again until the program has ended.
SLOW_PARENT = """
import importlib.util, json, os, sys
spec = importlib.util.spec_from_file_location("shepherd", sys.argv[1])
shepherd = importlib.util.module_from_spec(spec)
spec.loader.exec_module(shepherd)

def slow(start):
    def started(*arguments, **named):
        pid = start(*arguments, **named)
        if pid:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        return pid
    return started

os.posix_spawn, os.fork = slow(os.posix_spawn), slow(os.fork)
pid = shepherd._spawned(json.loads(sys.argv[2]), 1, 2)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=ISOLATIONS)
async def workplace(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Workplace]:
    root = tmp_path_factory.mktemp("agent")
    async with Workplace(
        root=root / "run",
        store=open_store(f"file://{root}/store"),
        site=SiteName("S"),
        pilot_id=PilotId("p"),
        isolation=request.param,
    ) as entered:
        yield entered


def _shell_order(directory: Path, script: str, rlimits: dict[str, int]) -> SpawnOrder:
    return SpawnOrder(
        argv=("/bin/sh", "-c", script),
        cwd=str(directory),
        env={"PATH": os.defpath},
        scratch=str(directory),
        stdout=str(directory / "stdout"),
        stderr=str(directory / "stderr"),
        rlimits=rlimits,
    )


def _open_directory(workplace: Workplace) -> Path:
    directory = workplace.root / f"{next(_ids)}.1"
    directory.mkdir()
    directory.chmod(0o777)
    return directory


def test_limits_hold_though_who_starts_it_is_slow(tmp_path: Path) -> None:
    order = _shell_order(
        tmp_path, "ulimit -S -f; ulimit -H -f; ulimit -S -n", {"FSIZE": 7 * BLOCK, "NOFILE": 50}
    )
    fields = {
        "argv": order.argv, "cwd": order.cwd, "env": order.env, "umask": order.umask,
        "rlimits": order.rlimits, "mark": 1 << 50, "cgroup": "", "has_network": True,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", SLOW_PARENT, shepherd.__file__, json.dumps(fields)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout.split(), done.returncode) == (["7", "7", "50"], 0), done.stderr


async def test_many_that_begin_at_once_have_each_its_own_limits(workplace: Workplace) -> None:
    async def seen(blocks: int) -> list[str]:
        description = JobDescription(
            executable="/bin/sh", arguments=("-c", "ulimit -S -f; ulimit -H -f; ulimit -H -p")
        )
        limits = PayloadLimits(file_bytes=blocks * BLOCK, processes=20_000 + blocks)
        payload = Payload(workplace, JobId(next(_ids)), Epoch(1), description, limits)
        outcome = await payload.run()
        assert outcome.reason.code is Code.DONE, outcome
        return outcome.stdout_tail.split()

    found = await asyncio.gather(*(seen(blocks) for blocks in range(1, PAYLOADS + 1)))
    assert found == [[str(n), str(n), str(20_000 + n)] for n in range(1, PAYLOADS + 1)]


@pytest.mark.parametrize("rlimits", [{"FSIZE": 7, "NO_SUCH_LIMIT": 7}, {"FSIZE": -1}, {"FSIZE": 1 << 70}])
async def test_without_its_limits_it_does_not_begin(workplace: Workplace, rlimits: dict[str, int]) -> None:
    directory = _open_directory(workplace)
    with pytest.raises(Unavailable, match="its limits cannot be set"):
        await workplace.processes.spawn(_shell_order(directory, "echo > began", rlimits))
    assert not (directory / "began").exists()


async def test_a_limited_program_that_is_not_there_is_the_jobs_fault(workplace: Workplace) -> None:
    order = _shell_order(_open_directory(workplace), "", {"FSIZE": 7})
    absent = msgspec.structs.replace(order, argv=("/no/such",))
    with pytest.raises(NotStarted, match="no such program"):
        await workplace.processes.spawn(absent)
