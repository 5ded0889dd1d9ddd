"""Rounds of a consumer: its lanes (groups of partitions with a transaction each) start together. If one ends, the others end after a batch."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any


class Round:
    """A period in which a consumer's lanes read the partitions `wanted`. Every lane ends after its current batch once `is_over` is set."""

    def __init__(self, wanted: tuple[int, ...]) -> None:
        self.wanted = wanted
        self.is_over = False


async def together(lanes: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run the coroutines of all lanes side by side. If one fails, cancel the others and raise its error."""
    try:
        async with asyncio.TaskGroup() as group:
            for lane in lanes:
                group.create_task(lane)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
