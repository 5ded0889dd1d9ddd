"""What stands still is begun anew, and what hangs ends its process, once: the next life sets the message aside."""

import asyncio
import signal
from pathlib import Path
from typing import Any, cast

import asyncpg
import pytest

from tests.services.runtime.counting import Counting
from tests.services.runtime.counting_service import HANGS, HANGS_AT_END
from tests.waiting import eventually
from wms.bus.consumer import Consumer
from wms.bus.membership import Membership
from wms.embedded.kafka_broker import KafkaBroker
from wms.ids import InstanceId
from wms.runtime.watchdog import EXIT_HANGING, Stalled, Watchdog


async def test_a_message_that_blocks_the_event_loop_ends_one_life_and_is_set_aside(
    tmp_path: Path, database: str
) -> None:
    async with (
        KafkaBroker(tmp_path / "broker") as broker,
        Counting(tmp_path, database, broker, idempotent=False).open() as counting,
    ):
        await counting.tell([HANGS])
        doomed = await counting.start()
        assert await doomed.wait() == EXIT_HANGING
        await counting.tell(range(20))
        await counting.start()
        assert await counting.took_effect(range(20)) == list(range(20))
        await eventually(lambda: letters(database))
    assert await letters(database) == ["it was in hand when the process ended"]


async def test_a_service_that_hangs_at_its_end_exits_at_its_deadline(tmp_path: Path, database: str) -> None:
    async with (
        KafkaBroker(tmp_path / "broker") as broker,
        Counting(tmp_path, database, broker, idempotent=False).open() as counting,
    ):
        hanging = await counting.start(**{HANGS_AT_END: "1"})
        await counting.tell(range(20))
        await counting.took_effect(range(20))
        hanging.send(signal.SIGTERM)
        async with asyncio.timeout(30):
            assert await hanging.wait() == 1
        assert "in _stubborn" in hanging.log_tail(1_000), "its log says where it hung"


async def letters(database: str) -> list[str]:
    connection = await asyncpg.connect(database)
    try:
        return [row["error"] for row in await connection.fetch("select error from dead_letter")]
    finally:
        await connection.close()


class FaultyConsumer:
    """Stands for a consumer that does not serve its partitions, or never ends its batch."""

    name = "faulty"
    in_hand: dict[int, tuple[int, int]] = {}

    def __init__(self) -> None:
        self.stalled = self.busy = 0.0
        self.begun_anew = 0
        self.progress = self

    def longest_stall_seconds(self) -> float:
        return self.stalled

    def busy_seconds(self) -> float:
        return self.busy

    def begin_anew(self) -> None:
        self.begun_anew += 1


def test_a_partition_that_is_not_served_is_read_anew_and_then_the_process_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faulty, ended = FaultyConsumer(), list[int]()
    consumer = cast("Consumer[Any]", faulty)
    membership = Membership(InstanceId("i"))
    dog = Watchdog([consumer], "", membership, ended.append)
    faulty.stalled = 61
    dog.look(consumer)
    assert faulty.begun_anew == 0  # the servers are away
    monkeypatch.setattr(membership, "good_seconds", lambda: 100.0)
    faulty.stalled = 0
    dog.look(consumer)
    assert faulty.begun_anew == 0
    faulty.stalled = 11
    dog.look(consumer)
    dog.look(consumer)
    assert faulty.begun_anew == 1  # the new readers get their time
    faulty.stalled = 61
    with pytest.raises(Stalled):
        dog.look(consumer)
    assert ended == []
    faulty.stalled, faulty.busy = 0, 601
    dog.look(consumer)
    assert ended == [EXIT_HANGING]
