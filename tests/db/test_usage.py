"""What owners have used: added up, and halved every half-life whenever it is read or added to."""

import pytest

from wms.db import usage
from wms.db.database import Transaction
from wms.ids import Identity

ANN, BOB = Identity("ann", "g", "v"), Identity("bob", "g", "v")
DAY = 86_400.0


async def pass_time(tx: Transaction, seconds: float) -> None:
    await tx.execute("update owner_usage set at = at - make_interval(secs => $1)", seconds)


async def test_charges_of_one_owner_add_up(tx: Transaction) -> None:
    await usage.charge(tx, {ANN: 100.0, BOB: 1.0}, DAY)
    await usage.charge(tx, {ANN: 50.0, Identity("ann", "g", "w"): 9.0}, DAY)
    await usage.charge(tx, {}, DAY)
    assert await usage.read(tx, DAY) == {ANN: 150.0, BOB: 1.0, Identity("ann", "g", "w"): 9.0}


async def test_a_half_life_halves_what_is_read_and_what_is_added_to(tx: Transaction) -> None:
    await usage.charge(tx, {ANN: 100.0}, DAY)
    await pass_time(tx, DAY)
    assert (await usage.read(tx, DAY))[ANN] == pytest.approx(50)
    assert (await usage.read(tx, DAY / 2))[ANN] == pytest.approx(25)
    await usage.charge(tx, {ANN: 10.0}, DAY)
    assert (await usage.read(tx, DAY))[ANN] == pytest.approx(60)


async def test_a_charge_whose_clock_is_behind_is_taken_as_of_the_later_moment(tx: Transaction) -> None:
    await usage.charge(tx, {ANN: 100.0}, DAY)
    await pass_time(tx, -DAY)
    assert (await usage.read(tx, DAY))[ANN] == pytest.approx(100), "nothing grows"
    await usage.charge(tx, {ANN: 40.0}, DAY)
    assert (await usage.read(tx, DAY))[ANN] == pytest.approx(120)


async def test_usage_of_long_ago_is_nothing_and_no_error(tx: Transaction) -> None:
    await usage.charge(tx, {ANN: 100.0}, DAY)
    await tx.execute("update owner_usage set at = '1980-01-01'")
    assert (await usage.read(tx, 1.0))[ANN] == pytest.approx(0)
    await usage.charge(tx, {ANN: 5.0}, 1.0)
    assert (await usage.read(tx, 1.0))[ANN] == pytest.approx(5)
