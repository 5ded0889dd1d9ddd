"""The incarnations of a database: each is begun once, counts its marks, and knows those that it has behind it."""

import msgspec

from tests.unit.messages.examples import MARK
from wms.db import incarnation
from wms.db.database import Database
from wms.db.incarnation import Incarnation, Standing
from wms.ids import JobId
from wms.messages.database_marks import DatabaseMark


async def begun(db: Database, before: Incarnation | None = None, predecessor: str = "") -> Incarnation:
    async with db.transaction() as tx:
        assert await incarnation.begin(tx, before, "cluster", 7, predecessor)
        assert not await incarnation.begin(tx, before, "cluster", 9, predecessor)
        now = await incarnation.current(tx)
    assert now is not None
    return now


async def test_an_incarnation_is_begun_once_and_the_next_takes_its_place(db: Database) -> None:
    async with db.transaction() as tx:
        assert await incarnation.current(tx) is None
        assert await incarnation.standing(tx) is None
    one = await begun(db)
    two = await begun(db, one, "another database's")
    assert (one.number, two.number, two.known_until) == (1, 2, 7)
    assert two.known >= {one.incarnation_id, two.incarnation_id, "another database's"}


async def test_a_mark_is_counted_before_it_is_sent_and_by_one_process(db: Database) -> None:
    one = await begun(db)
    async with db.transaction() as tx:
        assert await incarnation.next_mark(tx, "cluster", 8, 60.0) is None
        told = await incarnation.next_mark(tx, "cluster", 8, 0.0)
        assert told is not None
        assert (told.incarnation_id, told.age) == (one.incarnation_id, 1)
    async with db.transaction() as tx:
        assert await incarnation.standing(tx) == Standing(1, 1)
        await incarnation.next_mark(tx, "cluster", 3, 0.0)
        now = await incarnation.current(tx)
        assert now is not None
        assert now.known_until == 8
        await incarnation.next_mark(tx, "another cluster", 3, 0.0)
        now = await incarnation.current(tx)
        assert now is not None
        assert (now.cluster_id, now.known_until) == ("another cluster", 3)


async def test_a_database_knows_what_it_has_behind_it(db: Database) -> None:
    one = await begun(db)
    mine: DatabaseMark = msgspec.structs.replace(MARK, incarnation_id=one.incarnation_id, age=one.age)
    assert one.knows(mine)
    assert not one.knows(msgspec.structs.replace(mine, age=one.age + 1)), "a restore has undone it"
    assert not one.knows(MARK)
    two = await begun(db, one, MARK.incarnation_id)
    assert two.knows(MARK)
    assert two.knows(msgspec.structs.replace(mine, age=one.age + 1))


async def test_job_ids_go_on_a_partition_behind_the_last_one(db: Database) -> None:
    async with db.transaction() as tx:
        await incarnation.skip_job_ids(tx, JobId(5_000_001))
        assert await tx.fetchval("select reserve_job_ids(1)") == 15_000_000
        await incarnation.skip_job_ids(tx, JobId(3))
        assert await tx.fetchval("select reserve_job_ids(1)") == 25_000_000
