"""Each deadline is acted upon in its time, and other work goes on between many that are over at once."""

import asyncio
import itertools

from services.gateway.deadlines import AT_ONCE, Deadlines
from tests.waiting import eventually

SECONDS = 0.05


async def test_what_is_not_lifted_is_acted_upon_in_its_order() -> None:
    over: list[int] = []
    deadlines = Deadlines[int](SECONDS, over.append)
    for n in range(5):
        deadlines.set(n)
    deadlines.lift(2)
    deadlines.lift(9)
    await eventually(lambda: over == [0, 1, 3, 4])
    assert not deadlines
    deadlines.set(2)
    await eventually(lambda: over[-1] == 2)


async def test_a_deadline_that_runs_is_not_put_off() -> None:
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    deadlines = Deadlines[str](SECONDS, over.set_result)
    began = loop.time()
    while not over.done():
        deadlines.set("a")
        await asyncio.sleep(SECONDS / 10)
        assert loop.time() - began < 100 * SECONDS
    assert over.result() == "a"


async def test_other_callbacks_run_between_many_that_are_over() -> None:
    over: list[int] = []
    turns: list[int] = []
    deadlines = Deadlines[int](SECONDS, over.append)
    for n in range(10 * AT_ONCE):
        deadlines.set(n)
    while deadlines:
        turns.append(len(over))
        await asyncio.sleep(0)
    assert max(after - before for before, after in itertools.pairwise(turns)) <= 2 * AT_ONCE
