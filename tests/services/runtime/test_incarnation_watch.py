"""A service works only with the database that the log was written for."""

import time
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from tests.contract.bus.instances import Bus, Keys
from tests.unit.messages.examples import MARK
from wms.auth.orders import OrderKeys
from wms.auth.service_signatures import ServiceSignatures
from wms.bus import database_marks
from wms.bus.database_marks import DatabaseMarks
from wms.db import incarnation
from wms.db.incarnation import DatabaseReplaced, Incarnation
from wms.embedded.kafka_broker import KafkaBroker
from wms.errors import Unavailable
from wms.messages.database_marks import DatabaseMark
from wms.runtime.incarnation_watch import IncarnationWatch


@pytest_asyncio.fixture(loop_scope="session")
async def bus(
    broker: KafkaBroker, database: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Bus]:
    async with Bus.opened(broker, database, Keys(tmp_path_factory.mktemp("keys") / "keys")) as each:
        yield each


class Begun:
    """What was begun, as a job manager would."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        # A secret of the test's own: others' marks on this broker are none.
        self.marks = DatabaseMarks(
            bus.kafka, ServiceSignatures(OrderKeys([time.time_ns().to_bytes(32)]), time.time)
        )
        self.watch = IncarnationWatch(bus.db, self.marks)
        self.watch.begin = self.begin
        self.unknown: list[DatabaseMark | None] = []

    async def begin(self, before: Incarnation | None, last: DatabaseMark | None, until: int) -> None:
        self.unknown.append(last)
        async with self._bus.db.transaction() as tx:
            predecessor = last.incarnation_id if last else ""
            assert await incarnation.begin(tx, before, self._bus.kafka.cluster_id, until, predecessor)

    async def mark(self) -> DatabaseMark:
        async with self._bus.db.transaction() as tx:
            due = await incarnation.next_mark(tx, self._bus.kafka.cluster_id, 0, 0.0)
        assert due is not None
        await self.marks.write(due)
        return due

    async def look(self) -> None:
        async with self._bus.db.transaction() as tx:
            await self.watch.look(tx)


@pytest.fixture
def begun(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> Begun:
    monkeypatch.setattr(database_marks, "SILENT_SECONDS", 0.1)
    return Begun(bus)


async def test_a_new_database_begins_its_first_incarnation_and_goes_on_with_it(begun: Begun) -> None:
    await begun.watch.settle()
    await begun.mark()
    await begun.watch.settle()
    assert begun.unknown == [None]


async def test_a_restored_database_begins_another_once(begun: Begun, bus: Bus) -> None:
    await begun.watch.settle()
    await begun.mark()
    forgotten = await begun.mark()
    await bus.sql("update incarnation set age = age - 1, known_until = 0 returning 1")
    await begun.watch.settle()
    await begun.watch.settle()
    await begun.mark()
    await begun.watch.settle()
    assert begun.unknown == [None, forgotten]


async def test_an_empty_database_at_an_old_log_begins_behind_it(begun: Begun) -> None:
    await begun.marks.write(MARK)
    await begun.watch.settle()
    await begun.watch.settle()
    assert begun.unknown == [MARK]


async def test_while_another_database_is_worked_with_nothing_begins(begun: Begun) -> None:
    await begun.marks.write(MARK)
    read, news = begun.marks.read, begun.marks.read_news

    async def read_news(since: int) -> database_marks.LoggedMarks:
        await begun.marks.write(msgspec.structs.replace(MARK, age=MARK.age + 1))
        return await news(since)

    begun.marks.read_news = read_news  # type: ignore[method-assign]
    with pytest.raises(Unavailable, match="another"):
        await begun.watch.settle()
    assert begun.unknown == []
    assert len((await read(0)).marks) == 2


async def test_other_services_wait_for_a_job_manager(begun: Begun) -> None:
    await begun.marks.write(MARK)
    begun.watch.begin = None
    with pytest.raises(Unavailable, match="job manager"):
        await begun.watch.settle()


async def test_a_service_that_runs_notices_that_its_database_went_back(begun: Begun, bus: Bus) -> None:
    await begun.look()
    await begun.watch.settle()
    await begun.mark()
    await begun.look()
    await begun.mark()
    await begun.look()
    await bus.sql("update incarnation set age = 1 returning 1")
    with pytest.raises(DatabaseReplaced):
        await begun.look()


async def test_a_service_that_runs_notices_a_new_incarnation(begun: Begun, bus: Bus) -> None:
    await begun.watch.settle()
    await begun.look()
    async with bus.db.transaction() as tx:
        assert await incarnation.begin(tx, await incarnation.current(tx), "cluster", 0, "")
    with pytest.raises(DatabaseReplaced):
        await begun.look()
