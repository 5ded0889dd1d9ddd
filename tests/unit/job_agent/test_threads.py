"""Threads of the agent's own: calls beside the loop, so many at a time, and none after the end."""

import asyncio
import threading

import pytest

from services.job_agent.threads import Threads


async def test_what_a_call_returns_or_raises_is_the_callers() -> None:
    with Threads(1, "test") as threads:
        assert await threads.run(pow, 2, 5) == 32
        assert await threads.run(sorted, [2, 3, 1], reverse=True) == [3, 2, 1]
        with pytest.raises(ZeroDivisionError):
            await threads.run(divmod, 1, 0)


async def test_so_many_calls_run_at_a_time_and_the_loop_goes_on() -> None:
    both = threading.Barrier(2)
    with Threads(2, "test") as threads:
        async with asyncio.timeout(10):
            assert sorted(await asyncio.gather(*(threads.run(both.wait, 10) for _ in range(2)))) == [0, 1]


async def test_a_closed_pool_takes_no_more() -> None:
    threads = Threads(1, "test")
    threads.close()
    with pytest.raises(RuntimeError):
        await threads.run(int)
