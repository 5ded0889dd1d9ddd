"""A child process is killed and waited for, and its own end is told also if it dies at the same time as it is sent a signal."""

import asyncio
import os
import signal
from pathlib import Path

from tests.waiting import eventually
from wms.embedded.process import Child

AT_THE_SAME_TIME = 100
"""So often a child dies just before it is sent a signal: the event loop learns of its end a little later."""


async def test_the_end_of_a_child_is_told_that_dies_as_it_is_sent_a_signal(tmp_path: Path) -> None:
    async def one(number: int) -> int:
        child = await Child.start(["/bin/sleep", "600"], log_path=tmp_path / str(number))
        os.kill(child.pid, signal.SIGTERM)
        while child.running:
            child.send(signal.SIGKILL)
            await asyncio.sleep(0)
        return await child.wait()

    ends = [await one(number) for number in range(AT_THE_SAME_TIME)]
    assert set(ends) <= {-signal.SIGTERM, -signal.SIGKILL}


async def test_one_that_does_not_end_in_order_is_killed(tmp_path: Path) -> None:
    child = await Child.start(
        ["/bin/sh", "-c", "trap '' TERM; echo up; sleep 600 & wait; wait"], log_path=tmp_path / "log"
    )
    await eventually(lambda: "up" in child.log_tail())
    assert await child.stop(grace=0.05) == -signal.SIGKILL


async def test_a_signal_to_one_that_has_ended_does_nothing(tmp_path: Path) -> None:
    child = await Child.start(["/bin/true"], log_path=tmp_path / "log")
    assert await child.wait() == 0
    child.send(signal.SIGKILL)
    assert child.returncode == 0
