"""Exchanges with the services: one for each token, closed when nobody uses them."""

import asyncio

import pytest

from services.gateway.callers import Callers
from tests.system.place import Place
from wms.bus.kafka import BrokerSettings
from wms.client.credential import UserCredential
from wms.errors import Unavailable
from wms.runtime import clock


def credential(owner: str, token: str) -> UserCredential:
    return UserCredential(token, owner, clock.timestamp() + 3_600, {})


def broker(place: Place) -> BrokerSettings:
    return BrokerSettings(bootstrap=place.broker.bootstrap, fetch_wait_ms=0, idempotent=False)


async def test_a_token_has_one_exchange_and_no_two_share_one(place: Place, owner: str) -> None:
    callers = Callers(broker(place), most=10, idle_seconds=60)
    try:
        one, same, other = credential(owner, "one"), credential(owner, "one"), credential(owner, "other")
        async with callers.exchange(one) as first, callers.exchange(same) as second:
            assert first is second
            async with callers.exchange(other) as third:
                assert third is not first
        assert callers.count == 2
    finally:
        await callers.close()
    assert callers.count == 0


async def test_what_nobody_uses_is_closed(place: Place, owner: str) -> None:
    callers = Callers(broker(place), most=10, idle_seconds=0)
    async with callers.exchange(credential(owner, "one")):
        await asyncio.sleep(0)
        await callers.close_idle()
        assert callers.count == 1
    await callers.close_idle()
    assert callers.count == 0


async def test_a_full_gateway_closes_the_longest_idle_and_refuses_if_none_is(
    place: Place, owner: str
) -> None:
    callers = Callers(broker(place), most=1, idle_seconds=60)
    try:
        async with callers.exchange(credential(owner, "one")):
            with pytest.raises(Unavailable, match="as many are here"):
                async with callers.exchange(credential(owner, "two")):
                    pass
        async with callers.exchange(credential(owner, "two")):
            assert callers.count == 1
    finally:
        await callers.close()


async def test_an_exchange_that_could_not_be_opened_is_tried_anew(place: Place, owner: str) -> None:
    callers = Callers(broker(place), most=10, idle_seconds=60)
    try:
        expired = UserCredential("late", owner, clock.timestamp() + 3_600, {})
        callers._kafka = BrokerSettings(bootstrap="127.0.0.1:1")
        opening = asyncio.create_task(_use(callers, expired))
        await asyncio.wait([opening], timeout=0.5)
        (caller,) = callers._callers.values()
        caller.opened.cancel()
        await asyncio.wait([opening])
        callers._kafka = broker(place)
        await _use(callers, expired)
    finally:
        await callers.close()


async def _use(callers: Callers, one: UserCredential) -> None:
    async with callers.exchange(one):
        pass
