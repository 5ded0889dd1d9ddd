"""The loops of a service: one that ends by itself is a fault, one that is stopped is none."""

import asyncio

import pytest

from wms.runtime.every import Every
from wms.runtime.loop import LoopEnded, endless


class Ending:
    """A loop that ends in some way."""

    name = "ending"

    def __init__(self, error: BaseException | None) -> None:
        self._error = error

    async def run(self) -> None:
        if self._error:
            raise self._error


@pytest.mark.parametrize("error", [None, asyncio.CancelledError()])
async def test_a_loop_that_ends_by_itself_is_a_fault(error: BaseException | None) -> None:
    with pytest.raises(LoopEnded):
        await endless(Ending(error))


async def test_a_loop_that_is_stopped_is_none() -> None:
    task = asyncio.create_task(endless(Every("never", 1_000, asyncio.Event().wait)))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
