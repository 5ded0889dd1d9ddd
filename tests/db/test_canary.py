"""Canaries: one out at a time for each element, and what became of the last ones."""

import asyncpg
import pytest

from wms.db import ad, canary
from wms.db.database import Database, Transaction
from wms.ids import JobId

OUT = ("A", "ce")


async def send(tx: Transaction, job_id: int, ce: str = "ce", asked_by: str = "") -> None:
    await canary.insert(tx, JobId(job_id), "A", ce, asked_by)


async def probing(tx: Transaction, *ces: str) -> None:
    for ce in ces:
        await tx.execute("insert into ce_state (site, ce, state) values ('A', $1, 'probing')", ce)


async def test_an_element_has_one_canary_out(tx: Transaction) -> None:
    await send(tx, 1, asked_by="oz")
    with pytest.raises(asyncpg.UniqueViolationError):
        async with tx.connection.transaction():
            await send(tx, 2)
    await canary.close(tx, JobId(1), "Failed")
    await send(tx, 3)
    (out,) = await canary.unfinished(tx)
    assert (out.job_id, out.asked_by, out.state) == (3, "", None), "its job is gone"


async def test_what_became_of_a_canary_is_said_once(tx: Transaction) -> None:
    await send(tx, 1)
    await canary.close(tx, JobId(1), "late")
    await canary.close(tx, JobId(1), "Done")
    (line,) = await canary.of_place(tx, *OUT, 10)
    assert line.outcome == "late"


async def test_elements_that_are_tried_want_a_canary_with_the_vo_of_their_last_pilot(tx: Transaction) -> None:
    await probing(tx, "has one", "had one", "had none")
    await tx.execute("insert into ce_state (site, ce, state) values ('A', 'fine', 'healthy')")
    await send(tx, 1, "has one")
    await send(tx, 2, "had one")
    await canary.close(tx, JobId(2), "Failed")
    for n, vo in enumerate(("old", "new")):
        await tx.execute(
            "insert into pilot (pilot_id, site, ce, vo, dispatcher, slots, submitted_at)"
            " values ($1, 'A', 'had one', $1, 'local', 1, now() - make_interval(hours => $2))",
            vo, 2 - n,
        )  # fmt: skip
    assert [(each.ce, each.vo) for each in await canary.wanted(tx)] == [("had none", ""), ("had one", "new")]


async def test_the_last_canaries_are_shown_newest_first(tx: Transaction) -> None:
    for job_id, ce in ((1, "x"), (2, "y"), (3, "x")):
        await send(tx, job_id, ce)
        await canary.close(tx, JobId(job_id), "Done")
    await send(tx, 4, "x")
    assert [(each.job_id, each.outcome) for each in await canary.of_place(tx, "A", "x", 2)] == [
        (4, ""),
        (3, "Done"),
    ]
    assert [each.job_id for each in await canary.of_place(tx, "A", "", 10)] == [4, 3, 2, 1]
    assert await canary.of_place(tx, "B", "", 10) == []


async def test_elements_are_those_that_advertise_themselves_now(tx: Transaction) -> None:
    element = '{"site": "A", "ce": "%s", "slots": 1, "max_cpu_time": 60}'
    for ce, life in (("x", 60.0), ("y", 60.0), ("gone", -1.0)):
        await tx.execute(
            "insert into ad (site, ce, element, advertised_at, expires_at)"
            " values ('A', $1, $2::text::jsonb, now(), now() + make_interval(secs => $3))",
            ce, element % ce, life,
        )  # fmt: skip
    assert [each.ce for each in await canary.elements(tx, "A", "")] == ["x", "y"]
    assert [each.ce for each in await canary.elements(tx, "A", "y")] == ["y"]
    assert await canary.is_known(tx, "A", "gone"), "it advertised itself once"
    await ad.forget(tx, "A", "")
    assert not await canary.is_known(tx, "A", "")
    await probing(tx, "x")
    assert await canary.is_known(tx, "A", "x")
    assert not await canary.is_known(tx, "A", "y")


async def test_one_sends_canaries_at_a_time(db: Database) -> None:
    async with db.transaction() as one, db.transaction() as other:
        assert await canary.may_look(one)
        assert not await canary.may_look(other)


async def test_canaries_of_long_ago_are_forgotten_and_none_that_is_out(tx: Transaction) -> None:
    for job_id, ce in ((1, "x"), (2, "y"), (3, "z")):
        await send(tx, job_id, ce)
    for job_id in (1, 2):
        await canary.close(tx, JobId(job_id), "Done")
    await tx.execute(
        "update canary set sent_at = now() - interval '9 d', ended_at = ended_at - interval '9 d'"
    )
    assert await canary.forget(tx, 86_400, 1) == 1
    assert await canary.forget(tx, 86_400, 9) == 1
    assert [each.job_id for each in await canary.unfinished(tx)] == [3]
