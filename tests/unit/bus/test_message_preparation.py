"""Preparing deliveries: whose wait aside, and whose do not."""

import time
from collections.abc import AsyncIterator

import pytest

from wms.auth.principal import Principal
from wms.bus.delivery import Decoded, Delivery, Steps
from wms.bus.kafka import Message
from wms.bus.message_preparation import ALLOWANCE_SECONDS, ALONE_SECONDS, MessagePreparation
from wms.bus.time_slices import TimeSlices
from wms.errors import Rejected
from wms.parsing.parser_pool import NeedsProcess

REFUSED = Rejected("BAD", "is bad")


class Burning:
    """A preparation that takes as many seconds of processor time as a message says. Negative ones need a process, which refuses -2."""

    async def refresh(self) -> None:
        """Nothing is looked at."""

    def prepare(self, delivery: Delivery[float]) -> Steps | None:
        return self._steps(delivery.message) if delivery.message else None

    async def prepare_parsed(self, delivery: Delivery[float]) -> Steps:
        if delivery.message == -2:
            raise REFUSED
        return self._steps(0.0)

    def _steps(self, seconds: float) -> Steps:
        if seconds < 0:
            raise NeedsProcess
        ends = time.thread_time() + seconds
        while time.thread_time() < ends:
            yield
        return "prepared"


@pytest.fixture
async def preparing() -> AsyncIterator[MessagePreparation[float]]:
    slices = TimeSlices()
    yield MessagePreparation(Burning(), slices)
    slices.close()


def message(owner: str, offset: int, seconds: float) -> Decoded[float]:
    principal = Principal(kind="user", owner=owner, group="g", vo="v", token_id="t", expires_at=4e9)
    return Decoded(Message(0, offset, None, b"", ""), Delivery(principal, seconds))


def offsets(messages: list[Decoded[float]]) -> list[int]:
    return [each.record.offset for each in messages]


BULK = [message("bulk", offset, ALLOWANCE_SECONDS / 2) for offset in range(4)]


async def test_a_bulk_of_one_owner_is_prepared_whole_though_it_needs_more_than_the_allowance(
    preparing: MessagePreparation[float],
) -> None:
    good, deferred = await preparing.within_allowance(BULK)
    assert (offsets(good), deferred) == ([0, 1, 2, 3], [])
    assert all(each.delivery is not None and each.delivery.prepared == "prepared" for each in good)


async def test_beside_others_a_bulk_has_the_allowance_and_they_do_not_wait(
    preparing: MessagePreparation[float],
) -> None:
    good, deferred = await preparing.within_allowance([*BULK, message("ann", 4, 0.0)])
    assert 4 in offsets(good)
    assert offsets(deferred) == [each for each in range(4) if each not in offsets(good)] != []


async def test_alone_too_an_owner_has_no_more_than_a_batch_may_take(
    preparing: MessagePreparation[float],
) -> None:
    dear = message("dear", 0, 2 * ALONE_SECONDS)
    good, deferred = await preparing.within_allowance([dear, message("dear", 1, 0.0)])
    assert (good, offsets(deferred)) == ([], [0, 1])


async def test_what_needs_a_process_is_parked_and_then_parsed_there(
    preparing: MessagePreparation[float],
) -> None:
    parked = [message("dear", 0, -1), message("dear", 1, -2), message("dear", 2, 0.0)]
    good, deferred = await preparing.within_allowance([*parked, message("ann", 3, 0.0)])
    assert (offsets(good), offsets(deferred)) == ([3], [0, 1, 2])
    parsed = await preparing.whole(parked)
    assert [each.fault for each in parsed] == [None] * 3
    assert [each.delivery and each.delivery.prepared for each in parsed] == ["prepared", REFUSED, None]
