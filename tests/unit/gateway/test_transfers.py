"""Transfers take turns, for each holder and in all."""

import asyncio
import contextlib

import pytest

from services.gateway.config import GatewaySettings
from services.gateway.problem import TooMany
from services.gateway.transfers import Transfers
from wms.errors import Unavailable


def bounded(seconds: float = 0.01) -> Transfers:
    """Return bounds of two transfers a holder, and three in all."""
    return Transfers(GatewaySettings(transfers=3, owner_transfers=2, answer_seconds=seconds))


async def test_further_transfers_of_a_holder_wait_and_are_refused_in_the_end() -> None:
    transfers = bounded()
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(transfers.under_way("alice"))
        with pytest.raises(TooMany, match="2 transfers"):
            await stack.enter_async_context(transfers.under_way("alice"))
        await stack.enter_async_context(transfers.under_way("bob"))
        with pytest.raises(Unavailable, match="too many"):
            await stack.enter_async_context(transfers.under_way("carol"))
    assert not transfers._holders, "nothing is remembered of who has none"
    async with transfers.under_way("alice"):
        """It is free again."""


async def test_a_turn_goes_to_who_waits() -> None:
    transfers = bounded(seconds=30)
    release = asyncio.Event()

    async def transfer() -> None:
        async with transfers.under_way("alice"):
            await release.wait()

    first = [asyncio.create_task(transfer()) for _ in range(4)]
    await asyncio.sleep(0)
    first[3].cancel()
    release.set()
    await asyncio.wait(first)
    assert [each.cancelled() for each in first] == [False, False, False, True]
    assert not transfers._holders
