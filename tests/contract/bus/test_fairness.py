"""No message stops or slows others: time-outs, expensive messages, and messages that end the process."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from tests.contract.bus.instances import Bus, Instance, Keys, Note
from tests.waiting import eventually
from wms.bus.consumer import ConsumerSettings
from wms.bus.delivery import Delivery, Steps
from wms.db.database import GONE, Database, StatementTimeout, Transaction
from wms.embedded.server import KafkaServer
from wms.errors import Rejected
from wms.messages.wire import encode

FAIR = ConsumerSettings(batch=16, is_fair=True)


@pytest_asyncio.fixture(loop_scope="session")
async def bus(broker: KafkaServer, database: str, keys: Keys) -> AsyncIterator[Bus]:
    async with Bus.opened(broker, database, keys) as each:
        yield each


async def in_order(bus: Bus) -> list[int]:
    return [row["n"] for row in await bus.sql("select n from effect order by at")]


# --- statements that take too long --------------------------------------------------------------------


async def test_a_statement_that_takes_too_long_is_undone_and_says_so(bus: Bus) -> None:
    db = await Database.connect(bus.url, size=1, application="test", statement_seconds=0.2)
    with pytest.raises(StatementTimeout) as caught:
        await sleep_in(db)
    assert not isinstance(caught.value, GONE)
    async with db.transaction() as tx:
        assert await tx.fetch("select 1 from effect") == []
    await db.close()


async def sleep_in(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute("insert into effect values (1)")
        await tx.fetch("select pg_sleep(30)")


class NoConnection:
    """A pool, faulty on purpose: nobody answers there."""

    def acquire(self) -> Any:
        raise TimeoutError("no answer")


async def test_a_connection_that_takes_too_long_says_that_the_database_is_gone() -> None:
    with pytest.raises(GONE):
        async with Database(NoConnection()).transaction():
            pass


async def test_one_slow_message_goes_to_the_dead_letters_and_the_others_go_on(bus: Bus) -> None:
    told: list[tuple[int, str]] = []

    async def on_refused(_: Transaction, message: Note, fault: Rejected, __: str) -> None:
        told.append((message.n, fault.code))

    class Sleepy(Instance):
        async def _handle(self, tx: Transaction, batch: list[Delivery[Note]]) -> None:
            await super()._handle(tx, batch)
            if any(each.message.text == "slow" for each in batch):
                await tx.fetch("select pg_sleep(60)")

    await bus.send_raw([encode(Note(n=n, text="slow" if n == 5 else "")) for n in range(12)])
    one = Sleepy(
        bus, await bus.connect_db(), await bus.connect(),
        verified=True, on_refused=on_refused, policy=ConsumerSettings(seconds=2.0),
    )  # fmt: skip
    await one.start()
    assert await bus.took_effect(11) == [n for n in range(12) if n != 5]
    await bus.caught_up()
    await one.stop()
    (letter,) = await bus.letters()
    assert letter["error"].startswith("StatementTimeout")
    assert told == [(5, "TOO_SLOW")]


# --- expensive messages -------------------------------------------------------------------------------


class Dear:
    """A preparation that takes as many tenths of a second of processor time as a message's text is long."""

    async def refresh(self) -> None:
        """Nothing is looked at."""

    def prepare(self, delivery: Delivery[Note]) -> Steps | None:
        return self._steps(delivery.message) if delivery.message.text else None

    async def prepare_parsed(self, delivery: Delivery[Note]) -> Steps:
        return self._steps(delivery.message)

    def _steps(self, message: Note) -> Steps:
        if message.text == "broken":
            raise ValueError("not to be read")
        for _ in range(10 * len(message.text)):
            ends = time.thread_time() + 0.01
            while time.thread_time() < ends:
                pass
            yield
        return "prepared"


async def test_an_expensive_message_waits_aside_and_the_others_overtake_it(bus: Bus) -> None:
    dear, ann = bus.keys.token("dear"), bus.keys.token("ann")
    await bus.send_raw([encode(Note(n=1, text="x" * 8))], token=dear)
    await bus.send_raw([encode(Note(n=2))], token=dear)
    await bus.send_raw([encode(Note(n=n)) for n in range(10, 15)], token=ann)
    async with bus.instance(verified=True, policy=FAIR, preparation=Dear()) as one:
        await bus.took_effect(7)
        await eventually(lambda: one.consumer.lag == 0)
        assert one.consumer.handled == 7
    assert await in_order(bus) == [10, 11, 12, 13, 14, 1, 2]
    assert await bus.sql("select from parked_message") == []


async def test_parked_messages_take_effect_once_over_restarts(bus: Bus) -> None:
    numbers = range(1, 9)
    await bus.send_raw([encode(Note(n=n, text="xx")) for n in numbers], token=bus.keys.token("dear"))
    while len(await bus.effects()) < len(numbers):
        before = len(await bus.effects())
        async with bus.instance(verified=True, policy=FAIR, preparation=Dear()):
            await bus.took_effect(before + 1)
    assert await in_order(bus) == list(numbers)


async def test_who_ends_does_not_wait_for_an_expensive_message_and_it_is_not_set_aside(bus: Bus) -> None:
    await bus.send_raw([encode(Note(n=1, text="x" * 250))], token=bus.keys.token("dear"))
    async with bus.instance(verified=True, policy=FAIR, preparation=Dear()) as one:
        await eventually(lambda: is_taken(bus))
        async with asyncio.timeout(15):  # of the 25 s of processor time that it takes
            await one.stop()
        assert not await is_taken(bus)
        assert await is_parked(bus, 1)
        await one.start()


async def test_what_cannot_be_prepared_goes_to_the_dead_letters_and_the_rest_goes_on(bus: Bus) -> None:
    notes = [Note(n=1), Note(n=2, text="broken"), Note(n=3)]
    await bus.send_raw([encode(each) for each in notes])
    async with bus.instance(verified=True, policy=FAIR, preparation=Dear()):
        assert await bus.took_effect(2) == [1, 3]
        await bus.caught_up()
    (letter,) = await bus.letters()
    assert letter["error"] == "ValueError('not to be read')"


async def test_what_is_not_admitted_is_refused(bus: Bus) -> None:
    told: list[tuple[int, str, str]] = []

    async def on_refused(_: Transaction, message: Note, fault: Rejected, owner: str) -> None:
        told.append((message.n, fault.code, owner))

    def admit(decoded: Any) -> Rejected | None:
        return Rejected("TOO_FAST", "later") if decoded.delivery.message.n == 2 else None

    await bus.send_raw([encode(Note(n=n)) for n in (1, 2, 3)])
    async with bus.instance(verified=True, policy=FAIR, admit=admit, on_refused=on_refused):
        assert await bus.took_effect(2) == [1, 3]
        await bus.caught_up()
    assert told == [(2, "TOO_FAST", "ann")]


# --- messages that end the process --------------------------------------------------------------------

LEFT = (
    "insert into batch_in_hand (consumer, cluster_id, topic, partition, first_offset, last_offset, instance_id, deaths)"
    " select consumer, cluster_id, topic, partition, $2, $3, 'dead', $4 from consumer_offset where partition = $1"
)


async def test_a_message_that_was_alone_in_hand_when_a_second_process_ended_is_set_aside(bus: Bus) -> None:
    async with bus.instance():
        await eventually(lambda: offsets_are(bus, 4))
    await bus.send_raw([encode(Note(n=n)) for n in range(5)])
    (partition,) = {each.partition for each in await bus.read_all(bus.topic.name, 4, 5)}
    await bus.sql(LEFT, partition, 0, 0, 1)
    async with bus.instance():
        assert await bus.took_effect(4) == [1, 2, 3, 4]
        await bus.caught_up()
        await eventually(lambda: none_in_hand(bus))
    (letter,) = await bus.letters()
    assert letter["error"] == "it was in hand when the process ended"


async def test_a_message_that_was_alone_in_hand_when_one_process_ended_is_not_to_blame(bus: Bus) -> None:
    """Its process may have lost its database, or the machine may have been switched off."""
    async with bus.instance():
        await eventually(lambda: offsets_are(bus, 4))
    await bus.send_raw([encode(Note(n=n)) for n in range(5)])
    (partition,) = {each.partition for each in await bus.read_all(bus.topic.name, 4, 5)}
    await bus.sql(LEFT, partition, 0, 0, 0)
    async with bus.instance():
        assert await bus.took_effect(5) == [0, 1, 2, 3, 4]
        await eventually(lambda: none_in_hand(bus))
    assert await bus.letters() == []


async def test_a_statement_that_is_slow_while_the_servers_are_away_is_nobodys_fault(bus: Bus) -> None:
    async with bus.instance() as one:
        one.hold.clear()
        handling = one.consumer._handling
        handling._seconds, well = 0.3, handling._well_seconds
        handling._well_seconds = lambda: 0.0
        await bus.send_raw([encode(Note(n=1))])
        await one.holding.wait()
        one.holding.clear()
        await one.holding.wait()  # it is tried again
        assert await bus.letters() == []
        handling._well_seconds = well
        await eventually(bus.letters)
        (letter,) = await bus.letters()
    assert letter["error"].startswith("StatementTimeout")


async def test_a_batch_that_was_in_hand_when_the_process_ended_is_taken_one_by_one(bus: Bus) -> None:
    async with bus.instance():
        await eventually(lambda: offsets_are(bus, 4))
    await bus.send_raw([encode(Note(n=n)) for n in range(6)])
    (partition,) = {each.partition for each in await bus.read_all(bus.topic.name, 4, 6)}
    await bus.sql(LEFT, partition, 0, 3, 1)
    async with bus.instance() as one:
        await bus.took_effect(6)
        await eventually(lambda: none_in_hand(bus))
        assert one.batches[:4] == [[0], [1], [2], [3]]
    assert await bus.letters() == []


async def test_what_is_long_in_hand_is_noted_while_it_is(bus: Bus) -> None:
    async with bus.instance() as one:
        one.hold.clear()
        await bus.send_raw([encode(Note(n=n)) for n in (1, 2)])
        await one.holding.wait()
        await eventually(lambda: noted(bus, str(one.instance_id)))
        one.hold.set()
        await bus.took_effect(2)
        await eventually(lambda: none_in_hand(bus))


async def test_a_parked_message_that_ended_the_process_is_set_aside(bus: Bus) -> None:
    principal = bus.keys.verifier.verify(bus.keys.token("dear"), time.time())
    await bus.sql(
        "insert into parked_message (cluster_id, consumer, topic, partition, message_offset, owner, payload, principal,"
        " taken_by, taken_alone, deaths) select $1, 'test', $2, 0, n, 'dear', payload, $4::text::jsonb, taken_by, true, 1"
        " from unnest($3::bytea[], array[0, 1], array['dead', null]) as m(payload, n, taken_by)",
        bus.kafka.cluster_id,
        bus.topic.name,
        [encode(Note(n=1)), encode(Note(n=2))],
        msgspec.json.encode(principal).decode(),
    )
    async with bus.instance(verified=True, policy=FAIR, preparation=Dear()):
        assert await bus.took_effect(1) == [2]
    (letter,) = await bus.letters()
    assert letter["error"] == "it was in hand when the process ended"


async def offsets_are(bus: Bus, count: int) -> bool:
    return len(await bus.sql("select from consumer_offset")) == count


async def none_in_hand(bus: Bus) -> bool:
    return await bus.sql("select from batch_in_hand") == []


async def noted(bus: Bus, instance_id: str) -> bool:
    rows = await bus.sql("select instance_id, last_offset - first_offset + 1 as n from batch_in_hand")
    return [(row["instance_id"], row["n"]) for row in rows] in ([(instance_id, 2)], [(instance_id, 1)])


async def is_parked(bus: Bus, count: int) -> bool:
    return len(await bus.sql("select from parked_message")) == count


async def is_taken(bus: Bus) -> bool:
    return await bus.sql("select from parked_message where taken_by is not null") != []
