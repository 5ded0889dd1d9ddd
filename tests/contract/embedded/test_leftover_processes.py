"""Sweeping up what outlived its system."""

import asyncio
import subprocess
import sys
from pathlib import Path

import psutil

from tests.contract.embedded.test_supervisor import program
from tests.waiting import eventually
from wms.embedded.leftover_processes import members
from wms.embedded.lifeline import Lifeline
from wms.embedded.supervisor import Supervisor


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_descendants_that_left_their_parent_end_with_the_system(tmp_dir: Path) -> None:
    supervisor = Supervisor(tmp_dir)
    await supervisor.open()
    await supervisor.add(program(supervisor, "forks", ["sh", "-c", "setsid sleep 1000 & sleep 1000"]))
    strays = await eventually(lambda: [p for p in members(supervisor.system) if p.name() == "sleep"])
    await supervisor.close()
    assert not any(lives(stray.pid) for stray in strays)


PARENT = """
import asyncio, sys
from pathlib import Path
from wms.embedded.server import Program
from wms.embedded.supervisor import Supervisor

async def main():
    data = Path(sys.argv[1])
    supervisor = Supervisor(data)
    await supervisor.open()
    await supervisor.add(Program(data / "a", name="a", argv=["sh", "-c", "setsid sleep 1000 & exec sleep 1000"]))
    print(supervisor.pid_of("a"), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_killed_supervisor_takes_its_children_along_and_the_next_life_the_rest(tmp_dir: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_dir)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(await asyncio.to_thread(parent.stdout.readline))
        next_life = Supervisor(tmp_dir)
        strays = await eventually(
            lambda: [p for p in members(next_life.system) if p.pid not in (child, parent.pid)]
        )
        lifeline = Lifeline.open(tmp_dir / "up.lock")
        assert lifeline.pid == parent.pid
        assert not ended(lifeline)
        parent.kill()
        await asyncio.wait_for(lifeline.wait(), 10)
    assert ended(lifeline)
    lifeline.close()
    await eventually(lambda: not lives(child))
    assert any(lives(stray.pid) for stray in strays)
    await next_life.open()
    assert not any(lives(stray.pid) for stray in strays)
    await next_life.close()


def ended(lifeline: Lifeline) -> bool:
    return not lifeline.alive
