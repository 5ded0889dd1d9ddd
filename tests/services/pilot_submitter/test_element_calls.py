"""Calls beside a loop: one at a time for each element, waited for with patience, and no error is lost."""

import asyncio
from pathlib import Path

import pytest

from services.pilot_submitter.ce_endpoints import CeEndpoint, EndpointSettings
from services.pilot_submitter.element_calls import ElementCalls
from tests.waiting import eventually
from wms.dispatch.local import LocalDispatcher
from wms.ids import CeId


def endpoint(tmp_path: Path, ce: str) -> CeEndpoint:
    return CeEndpoint(CeId("A", ce), LocalDispatcher(tmp_path, [], {}), lambda: 0.0, EndpointSettings())


async def test_a_slow_element_is_left_behind_and_busy_until_it_answers(tmp_path: Path) -> None:
    calls, let_go, answered = ElementCalls(0.01), asyncio.Event(), list[str]()

    async def slow() -> None:
        await let_go.wait()
        answered.append("slow")

    async def quick() -> None:
        answered.append("quick")

    one, two = endpoint(tmp_path, "one"), endpoint(tmp_path, "two")
    await calls.run({one: slow(), two: quick()})
    assert answered == ["quick"]
    assert (calls.busy(), calls.is_busy(one), calls.is_busy(two)) == (
        frozenset([CeId("A", "one")]),
        True,
        False,
    )
    let_go.set()
    await eventually(lambda: not calls.busy())
    assert answered == ["quick", "slow"]


async def test_the_error_of_a_call_is_raised_even_if_it_comes_later(tmp_path: Path) -> None:
    calls, let_go = ElementCalls(0.01), asyncio.Event()

    async def failing() -> None:
        await let_go.wait()
        raise ConnectionError("the database is away")

    await calls.run({endpoint(tmp_path, "one"): failing()})
    let_go.set()
    await eventually(lambda: not calls.busy())
    with pytest.raises(ConnectionError, match="away"):
        await calls.run({})
    await calls.run({})


async def test_without_a_limit_a_round_waits_for_all(tmp_path: Path) -> None:
    ended: list[bool] = []

    async def slow() -> None:
        await asyncio.to_thread(lambda: None)
        ended.append(True)

    await ElementCalls().run({endpoint(tmp_path, "one"): slow()})
    assert ended == [True]
