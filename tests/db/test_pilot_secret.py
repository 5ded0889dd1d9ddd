"""Secrets of pilots in the database: a secret is locked while it is exchanged, and goes with its pilot."""

import asyncio

import pytest_asyncio

from wms.db import pilot, pilot_secret
from wms.db.database import Database
from wms.db.pilot import NewPilot
from wms.ids import PilotId

P1, P2 = PilotId("p-1"), PilotId("p-2")


def sent(pilot_id: PilotId) -> NewPilot:
    return NewPilot(pilot_id=pilot_id, site="A", ce="a1", vo="v", dispatcher="slurm", slots=1, link="gateway")


@pytest_asyncio.fixture(loop_scope="session", autouse=True)
async def secrets(db: Database) -> None:
    async with db.transaction() as tx:
        await pilot.insert(tx, [sent(P1), sent(P2)], 3_600)
        await pilot_secret.insert(tx, {P1: b"1" * 32, P2: b"2" * 32}, 60)


async def test_what_is_stored_is_read_with_what_the_token_names(db: Database) -> None:
    async with db.transaction() as tx:
        found = await pilot_secret.lock(tx, [P2, P1, PilotId("p-unknown")])
    assert {name: each.digest for name, each in found.items()} == {P1: b"1" * 32, P2: b"2" * 32}
    one = found[P1]
    assert (one.pilot.site, one.pilot.ce, one.pilot.vo) == ("A", "a1", "v")
    assert (one.expired, one.ended, one.exchange_id, one.exchanged_ago, one.refusals) == (
        False,
        False,
        None,
        None,
        0,
    )


async def test_two_services_do_not_exchange_one_secret_at_a_time(db: Database) -> None:
    async def exchange(name: str) -> str | None:
        async with db.transaction() as tx:
            found = (await pilot_secret.lock(tx, [P1]))[P1]
            if found.exchange_id is None:
                await pilot_secret.exchanged(tx, {P1: name}, 60)
            return found.exchange_id

    before = await asyncio.gather(*(exchange(f"{number:032x}") for number in range(4)))
    assert len([each for each in before if each is None]) == 1
    assert len(set(before)) == 2


async def test_a_refusal_is_counted(db: Database) -> None:
    async with db.transaction() as tx:
        await pilot_secret.refused(tx, [P1])
        await pilot_secret.refused(tx, [P1])
        found = await pilot_secret.lock(tx, [P1, P2])
    assert (found[P1].refusals, found[P2].refusals) == (2, 0)


async def test_a_secret_is_forgotten_with_its_pilot(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute("update pilot set ended_at = now() - interval '1 hour' where pilot_id = 'p-1'")
        assert await pilot.forget(tx, 60, 10) == 1
        assert set(await pilot_secret.lock(tx, [P1, P2])) == {P2}
