"""Ads that are not small are read in a process, whose death is an answer to the site alone."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from services.matcher import ad_parsing, ads
from services.matcher.ad_parsing import SMALL_BYTES, AdParsing
from tests.services.matcher.test_ads import ELEMENT, SITE
from tests.services.test_isolation import slots
from tests.services.world import World
from tests.unit.parsing import documents
from wms.bus.delivery import Decoded, Delivery
from wms.bus.kafka import Message
from wms.bus.message_preparation import MessagePreparation
from wms.bus.time_slices import TimeSlices
from wms.errors import Rejected
from wms.messages import replies
from wms.messages.ads import Advertise, AdvertiserMessage, Withdraw
from wms.parsing.parser_pool import ParserPool

Preparing = MessagePreparation[AdvertiserMessage]
LARGE = {f"Attribute{n}": "x" * 100 for n in range(SMALL_BYTES // 100)}


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[ParserPool]:
    found = ParserPool(ad_parsing.__name__, processes=1)
    running = asyncio.create_task(found.run())
    yield found
    running.cancel()
    await asyncio.wait([running])


@pytest_asyncio.fixture
async def preparing(pool: ParserPool) -> AsyncIterator[Preparing]:
    slices = TimeSlices()
    yield MessagePreparation(AdParsing(pool), slices)
    slices.close()


def said(rule: str = "", **more: Any) -> Decoded[AdvertiserMessage]:
    ad = Advertise(element=replace(ELEMENT, rule=rule), advertised_at=datetime.now(UTC), **more)
    return message(ad)


def message(ad: AdvertiserMessage) -> Decoded[AdvertiserMessage]:
    return Decoded(Message(0, 0, None, b"", ""), Delivery(SITE, ad))


async def prepared(preparing: Preparing, ad: Decoded[AdvertiserMessage]) -> Any:
    (found,) = await preparing.whole([ad])
    assert found.fault is None
    assert found.delivery is not None
    return found.delivery.prepared


async def test_small_ads_need_no_process_and_others_are_parked(
    preparing: Preparing, pool: ParserPool
) -> None:
    withdrawn = message(Withdraw(site="A", ce="ce", advertised_at=datetime.now(UTC)))
    for small in (said(), said(requirements="other.Owner == 1"), said(requirements="("), withdrawn):
        assert (await preparing.within_allowance([small]))[1] == []
    for dear in (said(rule="CurMatches < 7"), said(attributes=LARGE)):
        assert (await preparing.within_allowance([dear]))[1] == [dear]
    assert not pool._all


async def test_a_process_reads_what_the_handler_stores(the_world: World, preparing: Preparing) -> None:
    for each in (said(rule="CurMatches < 7", attributes={"CurrentJobs": 0}), said(attributes=LARGE)):
        assert each.delivery is not None
        expected = ads.read(each.delivery.message)  # type: ignore[arg-type]  # it is an ad
        (found,) = await preparing.whole([each])
        assert found.delivery is not None
        assert found.delivery.prepared == expected
        async with the_world.db.transaction() as tx:
            await ads.handle(tx, [found.delivery])
        assert await slots(the_world) == [ELEMENT.slots]


async def test_what_a_process_refuses_is_the_answer(the_world: World, preparing: Preparing) -> None:
    (found,) = await preparing.whole([said(attributes=LARGE, requirements="other.Owner ==")])
    assert found.delivery is not None
    assert isinstance(found.delivery.prepared, Rejected)
    async with the_world.db.transaction() as tx:
        await ads.handle(tx, [found.delivery])
    (refused,) = the_world.replies("keeper")
    assert isinstance(refused, replies.Refused)
    assert refused.code == found.delivery.prepared.code


async def test_the_death_of_a_process_is_an_answer_and_the_next_ad_is_read(
    preparing: Preparing, pool: ParserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ad_parsing, "allowed_by", documents.dead)
    assert (await prepared(preparing, said(attributes=LARGE))).code == "TOO_EXPENSIVE"
    assert pool.killed == 1
    monkeypatch.undo()
    assert (await prepared(preparing, said(attributes=LARGE))).ad.attributes == LARGE
