"""A tool's process is read and waited for under the event loop of the services, and leaves no pipe open."""

import signal
import sys

import psutil
import pytest
import uvloop

from tests.waiting import eventually
from wms.dispatch.tool_process import ToolProcess


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


async def started(program: str, text: bytes = b"") -> ToolProcess:
    return await ToolProcess.start(python(program), {"ONLY": "1"}, text)


async def _ended(process: ToolProcess) -> None:
    assert await process.wait() == 0
    process.close()


def test_what_it_prints_and_its_exit_code_are_returned() -> None:
    async def look() -> None:
        process = await started("import sys; print(sys.stdin.read()); sys.exit('no')", b"given")
        assert (await process.stdout.read(), await process.stderr.read()) == (b"given\n", b"no\n")
        assert await process.wait() == 1
        assert process.has_ended
        process.close()

    uvloop.run(look())


def test_a_killed_one_is_waited_for() -> None:
    async def look() -> None:
        process = await started("import time; time.sleep(600)")
        assert not process.has_ended
        process.kill()
        assert await process.wait() == -signal.SIGKILL
        process.close()

    uvloop.run(look())


def test_it_has_a_session_of_its_own() -> None:
    async def look() -> None:
        process = await started("import os; print(os.getsid(0) == os.getpid())")
        assert await process.stdout.read() == b"True\n"
        await process.wait()
        process.close()

    uvloop.run(look())


def test_pipes_are_closed_that_a_child_of_the_tool_still_has() -> None:
    left = "import os, time; os.fork() or time.sleep(20)"

    async def look() -> None:
        await _ended(await started("pass"))  # the event loop keeps what it opens for the first
        before = psutil.Process().num_fds()
        some = [await started(left) for _ in range(5)]
        for each in some:
            await _ended(each)
        await eventually(lambda: psutil.Process().num_fds() <= before)

    uvloop.run(look())


def test_a_program_that_is_not_there_is_an_error_and_leaves_no_pipe() -> None:
    async def look() -> None:
        before = psutil.Process().num_fds()
        with pytest.raises(FileNotFoundError):
            await ToolProcess.start(["/nowhere/sbatch"], {}, b"")
        assert psutil.Process().num_fds() == before

    uvloop.run(look())
