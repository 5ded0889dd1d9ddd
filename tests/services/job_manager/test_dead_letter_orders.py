"""Operators' orders on dead letters: who may, what becomes of them, and what is refused."""

from typing import Any

from tests.services.world import World, user
from wms.db import dead_letter, offset
from wms.db.dead_letter import DeadLetter
from wms.db.offset import ConsumedTopic
from wms.ids import CommandId
from wms.messages.commands import DropDeadLetters, ReplayDeadLetters, SkipMessage

OZ = user("oz", "operator", group="ops", vo="ops")
FEED = ConsumedTopic("", "matcher.requests", "wms.match.requests")


async def buried(world: World, count: int = 1) -> list[int]:
    """Keep so many dead letters; return their numbers."""
    async with world.db.transaction() as tx:
        for n in range(count):
            letter = DeadLetter(
                partition=0, offset=n, key=b"k", payload=b'{"type":"x"}', principal=None, error="bad"
            )
            await dead_letter.bury(tx, FEED, letter)
        return sorted(row["dead_letter_id"] for row in await dead_letter.page(tx, dead_letter.LetterPage()))


async def ordered(world: World, order: type[Any], n: int = 1, who: Any = OZ, **said: Any) -> Any:
    (answer,) = await world.command(who, order(command_id=CommandId(f"d-{who.owner}-{n}"), **said))
    return answer


async def test_an_operator_has_letters_replayed(the_world: World) -> None:
    first, second = await buried(the_world, 2)
    answer = await ordered(the_world, ReplayDeadLetters, letters=(first,), reason="mended")
    assert answer.said.startswith("1 asked for")
    rows = await the_world.sql("select dead_letter_id from dead_letter where replay_requested_at is not null")
    assert [row[0] for row in rows] == [first]
    missing = await ordered(the_world, ReplayDeadLetters, 2, letters=(second, second + 1))
    assert (missing.code, str(second + 1) in missing.message) == ("NO_SUCH_LETTER", True)
    rows = await the_world.sql("select count(*) from dead_letter where replay_requested_at is not null")
    assert rows[0][0] == 1


async def test_an_operator_drops_letters_all_or_none(the_world: World) -> None:
    first, second = await buried(the_world, 2)
    answer = await ordered(the_world, DropDeadLetters, letters=(first, second + 9), reason="a test")
    assert answer.code == "NO_SUCH_LETTER"
    assert await buried(the_world, 0) == [first, second]
    assert (
        await ordered(the_world, DropDeadLetters, 2, letters=(first,), reason="a test")
    ).said == "1 dropped"
    assert await buried(the_world, 0) == [second]
    again = await ordered(the_world, DropDeadLetters, 2, letters=(first,), reason="a test")
    assert (again.said, again.repeated) == ("1 dropped", True)
    (record,) = await the_world.sql("select operator, action, reason from operator_order")
    assert tuple(record) == ("oz", "drop", "a test")


async def test_only_the_next_message_of_a_partition_is_skipped(the_world: World) -> None:
    place: dict[str, Any] = {"consumer": FEED.consumer, "topic": FEED.topic, "partition": 1, "reason": "slow"}
    unread = await ordered(the_world, SkipMessage, offset=0, **place)
    assert unread.code == "NO_SUCH_PARTITION"
    async with the_world.db.transaction() as tx:
        await offset.begin(tx, FEED, [1])
    assert (await ordered(the_world, SkipMessage, 2, offset=7, **place)).code == "NOT_NEXT"
    assert "within seconds" in (await ordered(the_world, SkipMessage, 3, offset=0, **place)).said
    (row,) = await the_world.sql(
        "select operator, consumer, partition, message_offset, reason from skip_order"
    )
    assert tuple(row) == ("oz", FEED.consumer, 1, 0, "slow")


async def test_nobody_else_orders_anything(the_world: World) -> None:
    (letter,) = await buried(the_world)
    anna = user("anna", "job_administrator")
    skipped = {"consumer": "c", "topic": "t", "partition": 0, "offset": 0, "reason": "r"}
    orders: list[tuple[type[Any], dict[str, Any]]] = [
        (ReplayDeadLetters, {"letters": (letter,)}),
        (DropDeadLetters, {"letters": (letter,), "reason": "r"}),
        (SkipMessage, skipped),
    ]
    for n, (order, said) in enumerate(orders):
        answer = await ordered(the_world, order, n, anna, **said)
        assert answer.code == "NOT_ALLOWED"
    assert await buried(the_world, 0) == [letter]
