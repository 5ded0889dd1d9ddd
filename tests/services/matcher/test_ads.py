"""The ads that a matcher takes in, and what becomes of those that it cannot."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from services.matcher import ads
from services.matcher.ads import AdSync
from tests.services.test_isolation import slots
from tests.services.test_two_sided import advertise
from tests.services.world import World, pilot
from wms.auth.principal import Principal
from wms.bus.consumer import Delivery
from wms.db import ad
from wms.db.database import Database
from wms.ids import CeId
from wms.messages import replies
from wms.messages.ads import Advertise, Withdraw
from wms.site import ComputingElement


class FaultyIndex:
    """Stands for an index that fails at one ad."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}

    def advertise(self, site: str, ce: str, text: str) -> None:
        if site == "bad":
            raise ValueError("a text of this ad")
        self.told[f"{site}/{ce}"] = text


def test_an_ad_that_cannot_be_indexed_is_left_out() -> None:
    index = FaultyIndex()
    elements = AdSync(Database(None), index)  # type: ignore[arg-type]
    for site in ("a", "bad", "c"):
        elements._advertise(CeId(site, "ce"), "[x = 1]")
    assert index.told == {"a/ce": "[x = 1]", "c/ce": "[x = 1]"}


SITE = Principal(
    kind="site", owner="keeper", group="", vo="", site="A", token_id="t", expires_at=2_000_000_000.0
)


async def hear(world: World, ahead: timedelta, **offered: Any) -> None:
    usual: dict[str, Any] = {"ce": "ce", "slots": 1, "max_cpu_time": 60}
    element = ComputingElement(site="A", **usual | offered)
    said = Advertise(element=element, advertised_at=datetime.now(UTC) + ahead)
    async with world.db.transaction() as tx:
        await ads.handle(tx, [Delivery(SITE, said)])


async def test_an_ad_of_the_future_is_refused_to_its_sender(the_world: World) -> None:
    await hear(the_world, timedelta(days=365 * 900))
    assert await slots(the_world) == []
    (refused,) = the_world.replies("keeper")
    assert isinstance(refused, replies.Refused)
    assert (refused.code, refused.reply_to) == ("AD_OF_THE_FUTURE", "A/ce")
    await hear(the_world, timedelta(seconds=60), slots=7)
    assert await slots(the_world) == [7], "a clock may be a little ahead"


async def test_what_a_token_says_of_another_site_is_refused_to_its_bearer(the_world: World) -> None:
    await hear(the_world, timedelta(0), slots=1)
    eve = replace(SITE, owner="eve", site="B")
    stolen = Advertise(element=replace(ELEMENT, slots=999), advertised_at=datetime.now(UTC))
    for said in (stolen, Withdraw(site="A", ce="ce", advertised_at=datetime.now(UTC))):
        async with the_world.db.transaction() as tx:
            await ads.handle(tx, [Delivery(eve, said)])
    assert await slots(the_world) == [1]
    told = [each for each in the_world.replies("eve") if isinstance(each, replies.Refused)]
    assert [(each.code, each.reply_to) for each in told] == [("NOT_YOUR_SITE", "A/ce")] * 2


async def test_a_stored_ad_of_the_future_does_not_lock_its_element_out(the_world: World) -> None:
    await hear(the_world, timedelta(0), slots=1)
    await the_world.sql("update ad set advertised_at = '9999-01-01'")
    await hear(the_world, timedelta(0), slots=2)
    assert await slots(the_world) == [2]


ELEMENT = ComputingElement(site="A", ce="ce", setup="default", slots=4, max_cpu_time=10**6, memory_mb=4_000)


async def test_what_has_expired_is_looked_at_no_more(the_world: World) -> None:
    await the_world.submitted(requirements="other.Disks > 2")
    await advertise(the_world, attributes={"Disks": 3})
    elements = ads.AdSync(the_world.db, the_world.index)
    await elements.refresh()
    await the_world.sql("update ad set expires_at = now() - interval '1 s'")
    await elements.refresh()
    assert not await the_world.match(pilot("p-A"))


async def test_an_ad_whose_expressions_cannot_be_read_is_refused(the_world: World) -> None:
    await advertise(the_world, attributes={"Disks": 3})
    await advertise(the_world, attributes={"Disks": 4}, requirements="other.Owner ==")
    [row] = await the_world.sql("select attributes->'Disks' as disks from ad")
    assert row["disks"] == "3"


async def test_an_element_too_many_is_refused_to_its_site_and_the_others_are_stored(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ad, "SITE_ELEMENTS", 1)
    await hear(the_world, timedelta(0), slots=1)
    await hear(the_world, timedelta(seconds=1), slots=2, ce="more")
    await hear(the_world, timedelta(seconds=2), slots=3)
    assert await slots(the_world) == [3]
    (refused,) = the_world.replies("keeper")
    assert isinstance(refused, replies.Refused)
    assert (refused.code, refused.reply_to) == ("TOO_MANY_ELEMENTS", "A/more")
