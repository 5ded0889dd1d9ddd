"""Orders to the shepherd, and faults that end one of them alone."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import uvloop

from services.job_agent.payload.process_control import Processes
from services.job_agent.payload.shepherd import now
from services.job_agent.payload.shepherd_messages import SpawnOrder
from wms.errors import Unavailable


def test_a_lease_that_goes_on_while_the_shepherd_dies_is_no_fault(tmp_path: Path) -> None:
    async def renew_on_and_on() -> None:
        async with Processes() as processes:
            process = await processes.spawn(order(tmp_path, "sleep", "1000"))
            assert processes.shepherd_pid is not None
            os.kill(processes.shepherd_pid, signal.SIGKILL)
            while not process.ended.done():
                process.live_until(now() + 60)
                process.end(60)
                await asyncio.sleep(0)
            process.live_until(None)
            assert (await process.ended).lost

    uvloop.run(renew_on_and_on())


def order(directory: Path, *argv: str, **more: Any) -> SpawnOrder:
    where: dict[str, Any] = {
        "cwd": str(directory),
        "stdout": f"{directory}/out",
        "stderr": f"{directory}/err",
    }
    return SpawnOrder(argv=argv, env={"PATH": os.defpath}, **where, **more)


async def test_an_order_that_cannot_be_carried_out_fails_alone(tmp_path: Path) -> None:
    async with Processes() as processes:
        other = await processes.spawn(order(tmp_path, "sleep", "1000"))
        with pytest.raises(Unavailable, match="its limits cannot be set"):
            await processes.spawn(order(tmp_path, "true", rlimits={"NOTHING": 1}))
        assert not other.ended.done()
        await (await processes.spawn(order(tmp_path, "true"))).ended
        other.end()
