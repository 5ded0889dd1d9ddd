"""Turns at what takes long: one at a time, and the owner who used least is next."""

import asyncio
from collections.abc import Callable

from wms.parsing.owner_turns import OwnerTurns


class Parts:
    """Parts of owners that want a turn, and the order in which they got one."""

    def __init__(self, turns: OwnerTurns) -> None:
        self.turns = turns
        self.order: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}

    async def want(self, owner: str, part: str = "") -> asyncio.Task[None]:
        """Want a turn; it lasts until `end`."""
        name = owner + part
        self.gates[name] = asyncio.Event()
        task = asyncio.create_task(self._take(owner, name))
        await asyncio.sleep(0)
        return task

    async def _take(self, owner: str, name: str) -> None:
        async with self.turns.turn(owner):
            self.order.append(name)
            await self.gates[name].wait()

    async def end(self, name: str) -> None:
        self.gates[name].set()
        await until(lambda: not self.gates[name].is_set() or self.order[-1] != name)


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(20):
        if condition():
            return
        await asyncio.sleep(0)


async def test_one_at_a_time_and_a_newcomer_goes_before_who_has_used_much() -> None:
    parts = Parts(OwnerTurns())
    for n in range(3):
        await parts.want("mallory", str(n))
    assert parts.order == ["mallory0"]
    await parts.end("mallory0")
    assert parts.order == ["mallory0", "mallory1"]
    await parts.want("alice")
    await parts.end("mallory1")
    assert parts.order[-1] == "alice"
    await parts.end("alice")
    await parts.end("mallory2")
    assert parts.order == ["mallory0", "mallory1", "alice", "mallory2"]


async def test_who_goes_away_gives_the_turn_on() -> None:
    parts = Parts(OwnerTurns())
    holding = await parts.want("a")
    waiting = await parts.want("b")
    await parts.want("c")
    waiting.cancel()
    holding.cancel()
    await asyncio.wait([holding, waiting])
    await until(lambda: len(parts.order) == 2)
    assert parts.order == ["a", "c"]


async def test_a_turn_that_comes_with_the_cancellation_is_given_on() -> None:
    parts = Parts(OwnerTurns())
    await parts.want("a")
    waiting = await parts.want("b")
    await parts.want("c")
    parts.gates["a"].set()
    # The turn is given in this round of the event loop, and the task is cancelled before it takes it.
    for _ in range(5):
        await asyncio.sleep(0)
        if "b" not in parts.turns._waiting:
            break
    waiting.cancel()
    await asyncio.wait([waiting])
    parts.gates["b"].set()
    await until(lambda: "c" in parts.order)
    assert parts.order[-1] == "c"


async def test_afterwards_the_turn_is_free() -> None:
    turns = OwnerTurns()
    async with turns.turn("a"):
        pass
    async with turns.turn("a"), asyncio.timeout(1):
        pass


async def test_several_at_once_but_one_an_owner() -> None:
    parts = Parts(OwnerTurns(2))
    for n in range(3):
        await parts.want("mallory", str(n))
    assert parts.order == ["mallory0"]
    await parts.want("alice")
    await parts.want("bob")
    assert parts.order == ["mallory0", "alice"]
    await parts.end("alice")
    assert parts.order[-1] == "bob"
    await parts.end("mallory0")
    await until(lambda: parts.order[-1] == "mallory1")
    assert parts.order[-1] == "mallory1"
