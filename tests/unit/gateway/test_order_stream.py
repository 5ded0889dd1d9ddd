"""A pilot's orders wait in a bounded queue, which ends for a pilot that does not read."""

import pytest

from services.gateway.order_stream import OrderStream, WaitingBytes


@pytest.fixture
def waiting() -> WaitingBytes:
    return WaitingBytes(most=1_000)


async def test_orders_are_given_in_their_order_and_once(waiting: WaitingBytes) -> None:
    stream = OrderStream("p-1", waiting)
    stream.put(b"first")
    stream.put(b"second")
    assert await stream.next(5) == [b"first", b"second"]
    assert await stream.next(0.01) == []
    assert waiting.now == 0


async def test_a_pilot_that_does_not_read_loses_its_stream_and_holds_no_memory(waiting: WaitingBytes) -> None:
    stream = OrderStream("p-1", waiting, most=100)
    ended: list[OrderStream] = []
    stream.on_end = ended.append
    for _ in range(11):
        stream.put(b"x" * 10)
    stream.put(b"x")
    assert stream.ended == "the pilot does not read its orders"
    assert ended == [stream]
    assert waiting.now == 0
    assert await stream.next(5) == []


async def test_all_pilots_together_hold_no_more_than_the_gateway_allows(waiting: WaitingBytes) -> None:
    streams = [OrderStream(f"p-{number}", waiting) for number in range(20)]
    for stream in streams:
        stream.put(b"x" * 100)
    assert [bool(each.ended) for each in streams] == [False] * 10 + [True] * 10
    assert waiting.now == 1_000


async def test_an_end_is_told_once_with_its_first_reason(waiting: WaitingBytes) -> None:
    stream = OrderStream("p-1", waiting)
    ended: list[OrderStream] = []
    stream.on_end = ended.append
    stream.end("first")
    stream.end("second")
    stream.put(b"order")
    assert (stream.ended, ended, waiting.now) == ("first", [stream], 0)
