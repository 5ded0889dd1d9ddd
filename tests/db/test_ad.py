"""Ads: stored unless a newer one is there, renewed, withdrawn, expired, and forgotten in the end."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wms.db import ad, ce_endpoint
from wms.db.ce_endpoint import EndpointRow
from wms.db.database import Transaction
from wms.ids import CeId
from wms.messages.ads import Advertise, Withdraw
from wms.site import AdvertisedElement, ComputingElement, ad_of, forwards_of

THEN = datetime(2026, 1, 1, 12, tzinfo=UTC)
HERE = CeId("A", "ce")


def advertise(later: float = 0, ce: str = "ce", slots: int = 4, **said: Any) -> Advertise:
    element = ComputingElement(site="A", ce=ce, slots=slots, max_cpu_time=10**6)
    return Advertise(element=element, advertised_at=THEN + timedelta(seconds=later), **said)


async def slots(tx: Transaction) -> list[int]:
    return [each.slots for each in await ad.fresh(tx)]


async def test_a_newer_ad_replaces_an_older_one_and_no_older_one_a_newer(tx: Transaction) -> None:
    assert await ad.store(tx, [advertise(10)]) == {HERE}
    assert await ad.store(tx, [advertise(20, slots=5)]) == {HERE}
    assert await ad.store(tx, [advertise(15, slots=6)]) == set()
    assert await ad.store(tx, [advertise(20, slots=7)]) == set(), "of the same time is not newer"
    assert await slots(tx) == [5]


@pytest.mark.parametrize("says", ["the same", "something new"])
async def test_an_ad_that_comes_again_lives_on(tx: Transaction, says: str) -> None:
    await ad.store(tx, [advertise()])
    await tx.execute("update ad set expires_at = now() - interval '1 s', received_at = '2026-01-01'")
    assert await slots(tx) == []
    assert await ad.store(tx, [advertise(1, slots=4 if says == "the same" else 5)]) == {HERE}
    assert len(await slots(tx)) == 1
    was_new = await tx.fetchval("select received_at > '2026-01-02' from ad")
    assert was_new == (says == "something new"), "one that says nothing new is not read again"


async def test_a_stored_ad_of_the_future_is_replaced(tx: Transaction) -> None:
    await ad.store(tx, [advertise()])
    await tx.execute("update ad set advertised_at = '9999-01-01'")
    assert await ad.store(tx, [advertise(slots=9)]) == {HERE}
    assert await slots(tx) == [9]


async def test_several_ads_are_stored_each_by_itself(tx: Transaction) -> None:
    await ad.store(tx, [advertise(ce="x"), advertise(10, ce="y")])
    later = [advertise(5, ce="x"), advertise(5, ce="y", slots=9), advertise(5, ce="z")]
    assert await ad.store(tx, later) == {CeId("A", "x"), CeId("A", "z")}
    assert [each.ce for each in await ad.fresh(tx)] == ["x", "y", "z"]
    assert await ad.store(tx, []) == set()


async def test_what_goes_away_is_known_still_and_may_come_back(tx: Transaction) -> None:
    await ad.store(tx, [advertise(10)])
    gone = Withdraw(site="A", ce="ce", advertised_at=THEN)
    assert await ad.withdraw(tx, [gone]) == set(), "it has advertised itself since"
    gone = Withdraw(site="A", ce="ce", advertised_at=THEN + timedelta(seconds=10))
    assert await ad.withdraw(tx, [gone, Withdraw(site="A", ce="never", advertised_at=THEN)]) == {HERE}
    assert await slots(tx) == []
    assert await tx.fetchval("select count(*) from ad") == 1
    assert await ad.store(tx, [advertise(11)]) == {HERE}
    assert await slots(tx) == [4]
    assert await ad.withdraw(tx, []) == set()


async def test_what_has_long_expired_is_forgotten(tx: Transaction) -> None:
    await ad.store(tx, [advertise(ce="old"), advertise(ce="new")])
    await tx.execute("update ad set expires_at = now() - interval '31 d' where ce = 'old'")
    assert await ad.forget_expired(tx) == 1
    assert [each.ce for each in await ad.fresh(tx)] == ["new"]


async def test_an_operator_forgets_an_element_or_a_site(tx: Transaction) -> None:
    await ad.store(tx, [advertise(ce=name) for name in "xyz"])
    assert await ad.forget(tx, "A", "y") == {CeId("A", "y")}
    assert await ad.forget(tx, "B", "") == set()
    assert await ad.forget(tx, "A", "") == {CeId("A", "x"), CeId("A", "z")}


async def test_an_element_is_read_with_what_its_ad_says(tx: Transaction) -> None:
    said = advertise(
        attributes={"Disks": 3}, expressions={"Big": "my.Disks > 2"}, requirements="other.x > 1", rank="1"
    )
    await ad.store(tx, [said, advertise(ce="plain")])
    found = {each.ce: each for each in await ad.fresh(tx)}
    assert isinstance(found["ce"], AdvertisedElement)
    text = ad_of(found["ce"].pilot_resource(vo="v"))
    assert "disks = 3" in text
    assert "requirements = other.x > 1" in text
    assert type(found["plain"]) is ComputingElement


async def test_an_ad_that_cannot_be_read_any_more_wants_nothing_or_is_passed_over(tx: Transaction) -> None:
    await ad.store(
        tx, [advertise(ce="expression", requirements="other.x > 1"), advertise(ce="element"), advertise()]
    )
    await tx.execute("update ad set requirements = 'other.x >', received_at = now() where ce = 'expression'")
    await tx.execute(
        "update ad set element = element || '{\"slots\": -5}', received_at = now() where ce = 'element'"
    )
    found = {each.ce: each for each in await ad.fresh(tx)}
    assert sorted(found) == ["ce", "expression"]
    assert "requirements = error" in ad_of(found["expression"].pilot_resource(vo="v"))


async def test_elements_show_how_long_pilots_live_and_what_is_forwarded(tx: Transaction) -> None:
    await ad.store(tx, [advertise(), advertise(ce="other")])
    await ad.set_pilot_lifetimes(tx, {HERE: 3_600.0, CeId("B", "gone"): 60.0})
    await ce_endpoint.write(tx, [EndpointRow("A", "ce", "disks", "{}")])
    found = {each.ce: each for each in await ad.fresh(tx)}
    assert 3_000 < found["ce"].max_cpu_time < 3_600, "a pilot needs some of it to begin"
    assert found["other"].max_cpu_time == 10**6
    assert forwards_of(found["ce"].pilot_resource(vo="v")) == ("disks",)
    await ad.set_pilot_lifetimes(tx, {})


async def told_beyond(tx: Transaction, *ads: Advertise) -> list[str]:
    """Return the elements of these ads that their sites have no room for, and store the others."""
    beyond = await ad.beyond(tx, ads)
    await ad.store(tx, [each for each in ads if each.element.ce_id not in beyond])
    return sorted(place.ce for place in beyond)


async def test_a_site_has_no_more_elements_than_it_may(
    tx: Transaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ad, "SITE_ELEMENTS", 3)
    assert await told_beyond(tx, *(advertise(ce=ce) for ce in "dab")) == []
    await tx.execute("update ad set expires_at = now() - interval '1 day'")
    assert await told_beyond(tx, *(advertise(1, ce=ce) for ce in "bce")) == ["c", "e"], "expired ones count"
    assert await told_beyond(tx, advertise(2, ce="d", slots=9)) == [], "one that is there may change"
    elsewhere = ComputingElement(site="B", ce="c", slots=1, max_cpu_time=60)
    assert await told_beyond(tx, Advertise(element=elsewhere, advertised_at=THEN)) == []
    await ad.forget(tx, "A", "a")
    assert await told_beyond(tx, advertise(3, ce="c")) == []
    assert await told_beyond(tx) == []


async def test_the_ads_of_a_site_are_no_longer_together_than_they_may_be(
    tx: Transaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ad, "SITE_BYTES", 10_000)
    long, longer = {"X": "x" * 3_000}, {"X": "x" * 3_001 + "y" * 1_000}
    many = [advertise(ce=ce, attributes=long) for ce in "abc"]
    assert await told_beyond(tx, *many) == ["c"]
    assert await told_beyond(tx, *many[:2]) == [], "said again"
    assert await told_beyond(tx, advertise(1, ce="a", attributes=longer, requirements="true" * 900)) == ["a"]
    assert await told_beyond(tx, advertise(1, ce="a")) == [], "a shorter one has room"
    assert await told_beyond(tx, advertise(1, ce="c", attributes=long)) == []
