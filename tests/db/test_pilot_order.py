"""Orders for private pilots: what they lack, who sees them, and when they end."""

from typing import Any

import pytest

from wms.auth.policy import Scope
from wms.db import pilot_order
from wms.db.database import Transaction
from wms.provisioning.private import PilotOrder

ALL = Scope(reach="all")


async def order(
    tx: Transaction, owner: str = "ann", pilots: int = 2, seconds: float = 600, **said: Any
) -> int:
    made = PilotOrder(vo="v", owner_group="g", owner=owner, missing=pilots, **said)
    return await pilot_order.insert(tx, made, seconds)


async def send(tx: Transaction, order_id: int, *, ended: bool = False, ran: bool = False) -> None:
    await tx.execute(
        "insert into pilot (pilot_id, site, ce, vo, dispatcher, slots, order_id, ended_at, started_at)"
        " select 'p' || count(*), 'A', 'ce', 'v', 'local', 1, $1, case when $2 then now() end, case when $3 then now() end from pilot",
        order_id, ended, ran,
    )  # fmt: skip


async def lacking(tx: Transaction) -> dict[int, int]:
    return {each.order_id: each.missing for each in await pilot_order.open_orders(tx)}


async def test_an_order_is_open_until_it_has_its_pilots(tx: Transaction) -> None:
    first, second = await order(tx), await order(tx, "bob", 1, site="A", ce="ce", group_wide=True)
    assert list((await lacking(tx)).items()) == [(first, 2), (second, 1)], "the oldest first"
    await send(tx, first)
    await send(tx, second)
    assert await lacking(tx) == {first: 1}
    (found,) = await pilot_order.open_orders(tx)
    assert (found.owner, found.site, found.group_wide) == ("ann", "", False)


@pytest.mark.parametrize(("ran", "missing"), [(False, 2), (True, 1)])
async def test_a_pilot_that_ended_before_it_ran_is_sent_again(
    tx: Transaction, missing: int, *, ran: bool
) -> None:
    number = await order(tx)
    await send(tx, number, ended=True, ran=ran)
    assert await lacking(tx) == {number: missing}


async def test_what_an_owner_still_lacks_is_added_up(tx: Transaction) -> None:
    assert await pilot_order.missing(tx, "v", "g", "ann") == (0, 0)
    number = await order(tx, pilots=3)
    await order(tx, pilots=5)
    await order(tx, "bob", pilots=7)
    await order(tx, pilots=9, seconds=-1)
    await send(tx, number)
    assert await pilot_order.missing(tx, "v", "g", "ann") == (2, 7)


async def test_why_nothing_could_be_sent_is_kept_with_the_order(tx: Transaction) -> None:
    one, two = await order(tx), await order(tx)
    await pilot_order.hold(tx, {one: "no room", two: "no element"})
    await pilot_order.hold(tx, {one: "the cap"})
    await pilot_order.hold(tx, {})
    assert [each.held for each in await pilot_order.open_orders(tx)] == ["the cap", "no element"]


async def test_orders_are_listed_newest_first_with_how_they_stand(tx: Transaction) -> None:
    fulfilled, withdrawn, expired = await order(tx, pilots=1), await order(tx), await order(tx, seconds=-1)
    await send(tx, fulfilled, ended=True, ran=True)
    await pilot_order.withdraw(tx, ALL, [withdrawn])
    opened = await order(tx)
    await send(tx, opened)
    rows = await pilot_order.listed(tx, ALL, 0, 10)
    assert [(row["order_id"], row["state"], row["sent"], row["alive"]) for row in rows] == [
        (opened, "open", 1, 1),
        (expired, "expired", 0, 0),
        (withdrawn, "withdrawn", 0, 0),
        (fulfilled, "fulfilled", 1, 0),
    ]
    assert [row["order_id"] for row in await pilot_order.listed(tx, ALL, 1, 2)] == [expired, withdrawn]


async def test_everybody_reaches_the_orders_in_their_scope_alone(tx: Transaction) -> None:
    mine, others = await order(tx), await order(tx, "bob")
    bobs = Scope(reach="owner", owner="bob", group="g", vo="v")
    assert [row["order_id"] for row in await pilot_order.listed(tx, bobs, 0, 10)] == [others]
    assert await pilot_order.withdraw(tx, bobs, [mine, others]) == [others]
    assert await pilot_order.withdraw(tx, Scope(reach="vo", vo="w"), []) == []
    more = await order(tx)
    assert await pilot_order.withdraw(tx, Scope(reach="owner", owner="ann"), []) == [mine, more], (
        "none named: all in reach"
    )
    assert await pilot_order.withdraw(tx, ALL, []) == []


async def test_orders_that_expired_long_ago_are_forgotten(tx: Transaction) -> None:
    old, older = await order(tx, seconds=-100), await order(tx, seconds=-200)
    new = await order(tx, seconds=-10)
    assert await pilot_order.forget(tx, 60, 1) == 1
    assert [row["order_id"] for row in await pilot_order.listed(tx, ALL, 0, 10)] == [new, old]
    assert await pilot_order.forget(tx, 60, 9) == 1
    assert older not in [row["order_id"] for row in await pilot_order.listed(tx, ALL, 0, 10)]
