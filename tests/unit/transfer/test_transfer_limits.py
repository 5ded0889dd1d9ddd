"""The meter: too many bytes, too few in a time, and as many as there should be."""

import asyncio

import pytest

from wms.errors import Rejected, Unavailable
from wms.transfer.transfer_limits import TOO_LARGE, Meter, TransferLimits


def test_too_many_bytes_are_refused_and_those_before_are_told() -> None:
    told: list[int] = []
    meter = Meter(TransferLimits(file_bytes=10), 100, told.append)
    meter.begin(4)
    meter.moved(6)
    with pytest.raises(Rejected) as refused:
        meter.moved(1)
    assert (refused.value.code, told) == (TOO_LARGE, [6, 1])


async def test_what_moves_too_little_in_a_time_is_stopped() -> None:
    meter = Meter(TransferLimits(stall_seconds=0.05, least_rate=1_000), 10**9, lambda _: None)
    with pytest.raises(Unavailable, match="too slow"):
        await _trickle(meter)


async def test_what_moves_enough_is_not() -> None:
    meter = Meter(TransferLimits(stall_seconds=0.1, least_rate=10), 10**9, lambda _: None)
    loop = asyncio.get_running_loop()
    async with meter.watching():
        until = loop.time() + 0.3
        while loop.time() < until:
            meter.moved(100)
            await asyncio.sleep(0.005)


async def _trickle(meter: Meter) -> None:
    async with meter.watching():
        while True:
            meter.moved(1)
            await asyncio.sleep(0.01)
