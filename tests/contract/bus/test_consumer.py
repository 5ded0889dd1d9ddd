"""Each message takes effect once, whoever reads it, however often it is begun again."""

import asyncio
from functools import partial
from typing import Any

import msgspec
import pytest

from tests.contract.bus.instances import PARTITIONS, Bus, Instance, Note
from tests.waiting import eventually
from wms.bus.membership import Membership
from wms.db import dead_letter, offset
from wms.db.database import Transaction
from wms.db.dead_letter import UNVERIFIED_BYTES, LetterPage
from wms.db.offset import ConsumedTopic, PartitionLost
from wms.errors import Rejected
from wms.ids import InstanceId
from wms.messages.wire import PAYLOAD_LIMIT, encode


async def test_every_message_takes_effect_once_over_restarts(bus: Bus) -> None:
    for round_ in range(3):
        await bus.send(range(round_ * 100, round_ * 100 + 100))
        async with bus.instance(batch=16) as one:
            if round_ == 1:
                continue
            await bus.took_effect(round_ * 100 + 100)
            assert one.consumer.handled >= 100
            await eventually(partial(no_lag, one))

    assert await bus.effects() == list(range(300))


def no_lag(one: Instance) -> bool:
    return one.consumer.lag == 0


async def test_a_batch_in_hand_is_finished_before_it_stops(bus: Bus) -> None:
    await bus.send(range(50))
    async with bus.instance(batch=10) as one:
        one.hold.clear()
        await one.holding.wait()
        await one.stop()
        assert len(one.batches) == 1
        assert len(await bus.effects()) == len(one.batches[0])
        await one.start()
        await bus.took_effect(50)

    assert await bus.effects() == list(range(50))


async def test_it_stops_also_when_the_batch_in_hand_fails(bus: Bus) -> None:
    await bus.send(range(5))
    async with bus.instance() as one:
        one.hold.clear()
        await one.holding.wait()
        await bus.sql(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and state = 'idle in transaction'"
        )
        await asyncio.wait_for(one.stop(), 20)
        assert await bus.effects() == []
        await one.start()
        await bus.took_effect(5)

    assert await bus.effects() == list(range(5))


async def test_ten_thousand_messages(bus: Bus) -> None:
    async with bus.instance() as one:
        await bus.send(range(10_000))
        assert await bus.took_effect(10_000, within=60) == list(range(10_000))

        assert max(map(len, one.batches)) > 100


async def test_two_lanes_have_a_transaction_each_and_no_message_comes_twice(bus: Bus) -> None:
    await bus.send(range(200))
    async with bus.instance(batch=16, lanes=2) as one:
        await bus.took_effect(200)
        one.hold.clear()
        await bus.send(range(200, 300))

        async def both_hold() -> bool:
            waiting = await bus.sql(
                "select from pg_stat_activity where datname = current_database() and state = 'idle in transaction'"
            )
            return len(waiting) == 2

        await eventually(both_hold)
        one.hold.set()
        await bus.took_effect(300)
        await eventually(partial(no_lag, one))

    assert await bus.effects() == list(range(300))


async def test_duplicates_are_delivered_as_they_came(bus: Bus) -> None:
    await bus.send([3, 1, 2, 1, 3])
    async with bus.instance():
        assert await bus.took_effect(5) == [1, 1, 2, 3, 3]


async def test_two_instances_share_and_one_takes_over_when_the_other_leaves(bus: Bus) -> None:
    async with bus.instance() as one:
        await eventually(lambda: one.partitions == set(range(PARTITIONS)))
        async with bus.instance() as two:
            await eventually(lambda: one.partitions == {0, 2} and two.partitions == {1, 3})
            await bus.send(range(200))
            await bus.took_effect(200)
            assert one.batches
            assert two.batches
        await eventually(lambda: one.partitions == set(range(PARTITIONS)))
        await bus.send(range(200, 300))
        await bus.took_effect(300)

    assert await bus.effects() == list(range(300))


async def test_partitions_move_under_load_and_nothing_happens_twice(bus: Bus) -> None:
    async with bus.instance(batch=20):
        for round_ in range(4):
            await bus.send(range(round_ * 500, round_ * 500 + 500))
            async with bus.instance(batch=20):
                await bus.took_effect(round_ * 500 + 250)
        await bus.took_effect(2_000)

    assert await bus.effects() == list(range(2_000))


async def test_one_that_thinks_it_still_owns_a_partition_has_no_effect(bus: Bus) -> None:
    """The fence: the frozen instance wakes up after another has done its work."""
    await bus.send(range(20))
    async with bus.instance() as frozen:
        frozen.hold.clear()
        await frozen.holding.wait()
        await frozen.fall_silent()
        # What it has begun is in a transaction that holds the offsets: a true freeze loses that connection.
        await bus.sql(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and state = 'idle in transaction'"
        )
        async with bus.instance() as other:
            await bus.took_effect(20)
            frozen.hold.set()
            await bus.send(range(20, 40))
            await bus.took_effect(40)
            assert other.batches

    assert await bus.effects() == list(range(40))


async def test_a_lost_partition_is_refused_and_undoes_everything(bus: Bus) -> None:
    feed = ConsumedTopic("cluster", "test", bus.topic.name)
    async with bus.db.transaction() as tx:
        assert await offset.begin(tx, feed, [0, 1]) == {0: 0, 1: 0}
        await offset.advance(tx, feed, {0: (0, 5)})
    undone: list[bool] = []

    async def late() -> None:
        async with bus.db.transaction() as tx:
            tx.on_failure(lambda: undone.append(True))
            await tx.execute("insert into effect values (1)")
            tx.send("anywhere", "k", Note(n=1))
            await offset.advance(tx, feed, {1: (0, 5)})
            await offset.advance(tx, feed, {0: (0, 5)})

    with pytest.raises(PartitionLost):
        await late()
    async with bus.db.transaction() as tx:
        assert await offset.begin(tx, feed, [0, 1]) == {0: 5, 1: 0}

    assert undone == [True]
    assert await bus.effects() == []
    assert await bus.sql("select * from outbox") == []


async def test_two_that_both_believe_in_all_partitions_do_the_work_once(bus: Bus) -> None:
    await bus.send(range(500))
    async with bus.instance(batch=10) as one:
        two = Instance(bus, await bus.connect_db(), await bus.connect(), batch=10)
        sharers = {"test": [two.instance_id]}
        two.beat = lambda: believe(two.membership, sharers)  # type: ignore[method-assign]
        await two.start()
        await bus.took_effect(500, within=60)
        await eventually(lambda: two.partitions == set(range(PARTITIONS)))
        await two.stop()
        assert one.batches

    assert await bus.effects() == list(range(500))


async def believe(membership: Membership, sharers: dict[str, list[InstanceId]]) -> None:
    membership.update(sharers)


async def test_a_batch_comes_on_with_each_of_its_statements_and_with_nothing_else(bus: Bus) -> None:
    async with bus.instance() as one:
        await eventually(lambda: one.partitions == set(range(PARTITIONS)))
        steps: list[set[int]] = []
        one.consumer._handling.on_step = lambda partitions: steps.append(set(partitions))
        one.hold.clear()
        await bus.send_raw([encode(Note(n=1))], [b"k1"])
        await one.holding.wait()
        before = len(steps)
        one.hold.set()
        await eventually(lambda: one.consumer.handled)
        assert len(steps) > before
        assert set(map(len, map(frozenset, steps))) == {1}


async def test_lanes_go_on_together_when_the_share_lapses_for_one(bus: Bus) -> None:
    """A lane that is idle sees the share lapse; the one in a batch sees it restored. Both must read again."""
    async with bus.instance(batch=1, lanes=2) as one:
        await eventually(lambda: one.partitions == set(range(PARTITIONS)))
        one.hold.clear()
        await bus.send_raw([encode(Note(n=1))], [b"k1"])
        await one.holding.wait()
        sharers, one.membership._good_until = one.membership._sharers, 0.0
        one.beat = nothing  # type: ignore[method-assign]
        await eventually(lambda: sum(each.reading for each in one.consumer.health()) == PARTITIONS // 2)
        one.membership.update(sharers)
        one.beat = partial(believe, one.membership, sharers)  # type: ignore[method-assign]
        one.hold.set()
        await bus.send(range(100, 140))
        await bus.took_effect(41)
        await eventually(partial(no_lag, one))
        assert all(each.reading for each in one.consumer.health())


async def nothing() -> None:
    """Stand for a heartbeat that is late."""


async def test_a_partition_without_a_reader_is_told_with_its_lag(bus: Bus) -> None:
    async with bus.instance(lanes=2) as one:
        await bus.send(range(20))
        await bus.took_effect(20)
        await eventually(partial(no_lag, one))
        sharers = one.membership._sharers
        one.beat = nothing  # type: ignore[method-assign]
        one.membership._good_until = 0.0
        await eventually(lambda: not any(each.reading for each in one.consumer.health()))
        assert [each.partition for each in one.consumer.health()] == list(range(PARTITIONS))
        assert {each.next_offset is not None for each in one.consumer.health()} == {True}
        one.membership.update(sharers)


async def test_another_cluster_begins_at_the_beginning(bus: Bus) -> None:
    await bus.send(range(10))
    async with bus.instance():
        await bus.took_effect(10)
    await bus.sql(
        "update consumer_offset set cluster_id = 'the one before', next_offset = next_offset + 1000"
    )
    async with bus.instance():
        assert await bus.took_effect(20) == sorted([*range(10), *range(10)])


async def test_a_log_that_begins_again_is_read_again(bus: Bus) -> None:
    """A topic deleted and made anew in the same cluster: its offsets begin below those that are kept."""
    if bus.settings.idempotent is False:
        pytest.skip(
            "the embedded broker tells no reader that its offset is out of range; it is another cluster then"
        )
    await bus.send(range(10))
    async with bus.instance():
        await bus.took_effect(10)
    await bus.sql("update consumer_offset set next_offset = next_offset + 1000")
    async with bus.instance():
        await bus.took_effect(20)
        await bus.send([10])
        assert (await bus.took_effect(21))[-1] == 10


async def test_poison_is_found_and_the_rest_goes_on(bus: Bus) -> None:
    await bus.send(range(100))
    await bus.send([1000, 1001], spoilt=True)
    await bus.send(range(100, 200))
    async with bus.instance():
        assert await bus.took_effect(200) == list(range(200))
        await bus.caught_up()

    letters = await bus.letters()
    assert sorted(msgspec.json.decode(row["payload"])["n"] for row in letters) == [1000, 1001]
    assert {row["error"] for row in letters} == {"ValueError: a spoilt note"}
    assert {row["topic"] for row in letters} == {bus.topic.name}


JUNK = [
    b"",
    b"{",
    b"\xff\xfe\x00",
    b'{"type":"other","n":1}',
    b'{"type":"note","n":1,"unknown":1}',
    b'{"type":"note","n":"one"}',
    b'{"type":"note","n":1e400}',
    b'{"type":"note","n":NaN}',
    b"[" * 100_000,
    b'{"type":"note","n":1,"text":"' + b"x" * PAYLOAD_LIMIT + b'"}',
]


async def test_junk_goes_to_the_dead_letters(bus: Bus) -> None:
    await bus.send([1])
    await bus.send_raw(JUNK)
    await bus.send([2])
    async with bus.instance():
        assert await bus.took_effect(2) == [1, 2]
        await bus.caught_up()

    letters = await bus.letters()
    assert {row["payload"] for row in letters} == {each[:UNVERIFIED_BYTES] for each in JUNK}
    assert {row["error"].split(":")[0] for row in letters} == {"MESSAGE_INVALID", "MESSAGE_TOO_LARGE"}


async def test_what_the_database_cannot_take_is_poison_too(bus: Bus) -> None:
    await bus.send([1, 2**62 * 4, 3])
    async with bus.instance():
        assert await bus.took_effect(2) == [1, 3]
        await bus.caught_up()

    (letter,) = await bus.letters()
    assert letter["error"].startswith("DataError")


async def test_a_dead_letter_keeps_the_sender_and_never_the_token(bus: Bus) -> None:
    bad_token = bus.keys.token("eve")[:-8] + "AAAAAAAA"
    await bus.send([1], spoilt=True)
    await bus.send([2], token=bad_token)
    await bus.send([3], token="")
    await bus.send([4], token=bus.keys.token("old", lifetime=1) + "x")
    await bus.send([5])
    async with bus.instance(verified=True) as one:
        assert await bus.took_effect(1) == [5]
        await bus.caught_up()
        assert one.senders == {"ann"}

    letters = {msgspec.json.decode(row["payload"])["n"]: row for row in await bus.letters()}
    assert letters.keys() == {1, 2, 3, 4}
    assert msgspec.json.decode(letters[1]["principal"])["owner"] == "ann"
    assert [letters[n]["principal"] for n in (2, 3, 4)] == [None] * 3
    assert [letters[n]["error"].split(":")[0] for n in (2, 3, 4)] == [
        "TOKEN_INVALID",
        "TOKEN_MISSING",
        "TOKEN_INVALID",
    ]
    kept = await bus.sql("select string_agg(d::text, ' ') as everything from dead_letter d")
    for token in (bus.token, bad_token):
        assert token not in kept[0]["everything"]
        assert token.split(".")[1] not in kept[0]["everything"]


async def test_a_refused_token_is_told_to_whoever_wants_to_know(bus: Bus) -> None:
    told = []

    async def on_refused(tx: Transaction, message: Note, fault: Rejected, claimed: str) -> None:
        told.append((message.n, fault.code, claimed))

    await bus.send([1], token=bus.keys.token("eve")[:-8] + "AAAAAAAA")
    await bus.send([2])
    async with bus.instance(verified=True, on_refused=on_refused):
        assert await bus.took_effect(1) == [2]
        await bus.caught_up()

    assert told == [(1, "TOKEN_INVALID", "")]  # whose it claims to be nobody knows
    assert await bus.letters() == []


async def test_what_cannot_be_read_is_answered_if_its_token_is_good(bus: Bus) -> None:
    told = []

    async def on_refused(tx: Transaction, message: Any, fault: Rejected, sender: str) -> None:
        told.append((message.command_id, message.query_id, message.client, fault.code, sender))

    wrong = b'{"type":"note","n":"one","command_id":"c-1","client":"cli"}'
    await bus.send_raw([wrong, wrong.replace(b"c-1", b"c\\u001b1"), b'{"type":"note","n":"one"}', b"junk"])
    await bus.send_raw([wrong], token=bus.keys.token("eve")[:-8] + "AAAAAAAA")
    await bus.send([2])
    async with bus.instance(verified=True, on_refused=on_refused):
        assert await bus.took_effect(1) == [2]
        await bus.caught_up()

    assert [each[:4] for each in told] == [("c-1", "c-1", "cli", "MESSAGE_INVALID")]
    assert len(await bus.letters()) == 5


async def test_a_dead_letter_is_handled_again_when_asked_for(bus: Bus) -> None:
    await bus.send([1, 2], spoilt=True)
    async with bus.instance(verified=True, outgoing=bus.topic.name + ".out") as one:
        await eventually(lambda: letters_are(bus, 2))
        async with bus.db.transaction() as tx:
            second, first = [row["dead_letter_id"] for row in await dead_letter.page(tx, LetterPage())]
            assert await dead_letter.ask_replay(tx, [first]) == [first]

        assert await one.consumer.replay_one()  # it fails once more, and says so
        assert not await one.consumer.replay_one()
        assert (await bus.letters())[0]["replay_requested_at"] is None
        assert await bus.effects() == []

        one.accept_spoilt = True
        async with bus.db.transaction() as tx:
            assert sorted(await dead_letter.ask_replay(tx, [first, second])) == [first, second]
        assert await one.consumer.replay_one()
        assert await one.consumer.replay_one()
        assert not await one.consumer.replay_one()
        assert await bus.effects() == [1, 2]
        assert len(await bus.read_all(bus.topic.name + ".out", 1, 2)) == 2

    assert all(row["replayed_at"] is not None for row in await bus.letters())


async def letters_are(bus: Bus, count: int) -> bool:
    return len(await bus.letters()) == count


async def test_what_was_never_verified_is_not_handled_again(bus: Bus) -> None:
    await bus.send([1], token="")
    async with bus.instance(verified=True) as one:
        await eventually(lambda: letters_are(bus, 1))
        async with bus.db.transaction() as tx:
            await dead_letter.ask_replay(tx, [row["dead_letter_id"] for row in await bus.letters()])
        assert await one.consumer.replay_one()

    (letter,) = await bus.letters()
    assert letter["error"].startswith("Rejected: its sender was not verified")
    assert letter["replayed_at"] is None
    assert await bus.effects() == []


async def test_the_database_gone_for_a_moment_loses_nothing(bus: Bus) -> None:
    async with bus.instance(batch=20, outgoing=bus.topic.name + ".out"):
        for round_ in range(5):
            await bus.send(range(round_ * 100, round_ * 100 + 100))
            await bus.sql(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid()"
            )
        await bus.took_effect(500)
        out = await bus.read_all(bus.topic.name + ".out", 1, 500)

    assert await bus.effects() == list(range(500))
    assert {msgspec.json.decode(each.payload)["n"] for each in out} == set(range(500))


async def test_a_deadlock_is_tried_again(bus: Bus) -> None:
    await bus.sql("create table step (n int)")
    await bus.sql(
        "create function stumble() returns trigger language plpgsql as $$ begin"
        " if (select last_value from stumbles) < 3 then perform nextval('stumbles');"
        " raise deadlock_detected; end if; return null; end $$"
    )
    await bus.sql("create sequence stumbles")
    await bus.sql("create trigger stumble after insert on effect execute function stumble()")
    await bus.send(range(10))
    async with bus.instance():
        assert await bus.took_effect(10) == list(range(10))

    assert await bus.letters() == []


async def test_both_ends_at_once(bus: Bus) -> None:
    """Large batches in and out while another sends: the relay, the consumer and the reader side by side."""
    out = bus.topic.name + ".out"
    async with bus.instance(outgoing=out), bus.instance(outgoing=out):
        await asyncio.gather(*(bus.send(range(n, 3_000, 3)) for n in range(3)))
        assert await bus.took_effect(3_000) == list(range(3_000))
        found = await bus.read_all(out, 1, 3_000)

    assert {each.payload for each in found} == {encode(Note(n=n)) for n in range(3_000)}


async def test_a_full_disk_of_the_database_is_waited_for(bus: Bus) -> None:
    await bus.sql("create sequence attempts")
    await bus.sql(
        "create function fill() returns trigger language plpgsql as $$ begin"
        " if nextval('attempts') < 3 then raise disk_full; end if; return null; end $$"
    )
    await bus.sql("create trigger fill after insert on effect execute function fill()")
    await bus.send([1])
    async with bus.instance():
        assert await bus.took_effect(1) == [1]

    assert await bus.letters() == []


async def test_a_probe_passes_through_every_partition_and_not_past_what_blocks(bus: Bus) -> None:
    async with bus.instance() as one:
        await eventually(lambda: one.partitions == set(range(PARTITIONS)))

        def passed() -> list[bool]:
            return [each.round_trip_ms is not None for each in one.consumer.probe_health().probes]

        await one.consumer.probe()
        await eventually(lambda: passed() == [True] * PARTITIONS)
        one.hold.clear()
        await bus.send([1])
        await one.holding.wait()
        before = one.consumer.probe_health().passed
        await one.consumer.probe()
        # A partition of which the probe was read has it in hand behind the message that blocks it, or not yet at all.
        assert (
            sum(len(each.sent) + len(each.read) for each in one.consumer.progress.probes._partitions.values())
            == 4
        )
        one.hold.set()
        await eventually(lambda: one.consumer.probe_health().passed == before + PARTITIONS)
        await bus.caught_up()

    assert await bus.effects() == [1]
    assert one.batches == [[1]]
    assert await bus.letters() == []
