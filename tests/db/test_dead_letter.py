"""Dead letters: kept once, tried again when asked for, and bounded for each sender and all together."""

import json
from typing import Any

import pytest

from wms.db import dead_letter
from wms.db.database import Database, Transaction
from wms.db.dead_letter import UNVERIFIED_BYTES, DeadLetter, LetterPage, LetterRoom
from wms.db.offset import ConsumedTopic

FEED = ConsumedTopic("cluster", "job-manager", "wms.job.commands")
ANN = json.dumps({"owner": "ann"})


def letter(offset: int, principal: str | None = ANN, **more: Any) -> DeadLetter:
    given: dict[str, Any] = {"partition": 0, "key": b"k", "payload": b"{}", "error": "it failed"}
    return DeadLetter(offset=offset, principal=principal, **(given | more))


async def bury(tx: Transaction, *letters: DeadLetter, feed: ConsumedTopic = FEED) -> list[int]:
    for each in letters:
        await dead_letter.bury(tx, feed, each)
    return await numbers(tx)


async def numbers(tx: Transaction, **wanted: Any) -> list[int]:
    return [row["dead_letter_id"] for row in await dead_letter.page(tx, LetterPage(**wanted))]


async def test_a_message_is_kept_once_however_often_it_is_buried(tx: Transaction) -> None:
    assert len(await bury(tx, letter(1), letter(1), letter(2))) == 2
    assert len(await bury(tx, letter(1), feed=ConsumedTopic("other", FEED.consumer, FEED.topic))) == 3


async def test_of_an_unknown_sender_the_beginning_is_kept_and_of_a_known_one_all(tx: Transaction) -> None:
    long = b"x" * (UNVERIFIED_BYTES + 1)
    ids = await bury(tx, letter(1, payload=long), letter(2, None, payload=long))
    rows = await dead_letter.whole(tx, ids)
    assert [len(row["payload"]) for row in rows] == [UNVERIFIED_BYTES + 1, UNVERIFIED_BYTES]
    assert [row["principal"] and json.loads(row["principal"])["owner"] for row in rows] == ["ann", None]


async def test_pages_are_newest_first_and_by_consumer(tx: Transaction) -> None:
    ids = await bury(tx, *map(letter, range(3)))
    (mine,) = set(await bury(tx, letter(9), feed=ConsumedTopic("cluster", "matcher", "t"))) - set(ids)
    assert ids == sorted(ids, reverse=True)
    assert await numbers(tx, limit=2) == [mine, ids[0]]
    assert await numbers(tx, before=ids[0]) == ids[1:]
    assert await numbers(tx, consumer="matcher") == [mine]
    (row,) = await dead_letter.page(tx, LetterPage(consumer="matcher"))
    assert (row["size"], row["beginning"], row["sender"]) == (2, b"{}", "ann")


async def test_a_letter_is_tried_again_when_that_is_asked_for_and_once(tx: Transaction) -> None:
    newer, older = await bury(tx, letter(1), letter(2))
    assert await dead_letter.to_replay(tx, FEED.consumer) is None
    assert sorted(await dead_letter.ask_replay(tx, [newer, older, 10**6])) == [older, newer]
    assert await dead_letter.to_replay(tx, "matcher") is None
    found = await dead_letter.to_replay(tx, FEED.consumer)
    assert found is not None
    assert found["dead_letter_id"] == older
    await dead_letter.replayed(tx, older)
    assert await numbers(tx) == [newer]
    assert await numbers(tx, replayed=True) == [newer, older]
    assert await dead_letter.ask_replay(tx, [older]) == [], "it worked"


async def test_a_letter_that_fails_again_waits_to_be_asked_for_again(tx: Transaction) -> None:
    (number,) = await bury(tx, letter(1))
    await dead_letter.ask_replay(tx, [number])
    await dead_letter.replay_failed(tx, number, "it failed\x00again")
    assert await dead_letter.to_replay(tx, FEED.consumer) is None
    (row,) = await dead_letter.page(tx, LetterPage())
    assert row["error"] == "it failed\\x00again"


async def test_two_consumers_do_not_try_one_letter_at_once(db: Database) -> None:
    async with db.transaction() as tx:
        await dead_letter.ask_replay(tx, await bury(tx, letter(1), letter(2)))
    async with db.transaction() as one, db.transaction() as other:
        mine = await dead_letter.to_replay(one, FEED.consumer)
        theirs = await dead_letter.to_replay(other, FEED.consumer)
        assert mine is not None
        assert theirs is not None
        assert mine["dead_letter_id"] != theirs["dead_letter_id"]


async def test_what_is_dropped_is_told(tx: Transaction) -> None:
    (number,) = await bury(tx, letter(7, payload=b"12345"))
    assert await dead_letter.drop(tx, [number, 10**6]) == {
        number: f"letter {number}: job-manager, wms.job.commands/0@7, 5 bytes: it failed"
    }
    assert await numbers(tx) == []


async def test_letters_of_long_ago_are_forgotten(tx: Transaction) -> None:
    _, old = await bury(tx, letter(1), letter(2))
    await tx.execute(
        "update dead_letter set arrived_at = now() - interval '2 d' where dead_letter_id = $1", old
    )
    assert await dead_letter.forget(tx, 86_400) == 1
    assert old not in await numbers(tx)


@pytest.mark.parametrize("sender", [ANN, None])
async def test_one_sender_cannot_take_all_the_room(tx: Transaction, sender: str | None) -> None:
    (others,) = await bury(tx, letter(0, json.dumps({"owner": "bob"})))
    await bury(tx, *(letter(n, sender) for n in range(1, 11)))
    assert await dead_letter.bound(tx, LetterRoom(letters=24, bytes=10**6)) == 7
    left = await numbers(tx)
    assert len(left) == 4
    assert others in left


async def test_all_letters_together_have_their_room(tx: Transaction) -> None:
    ids = await bury(tx, *(letter(n, json.dumps({"owner": f"o{n}"})) for n in range(12)))
    assert await dead_letter.bound(tx, LetterRoom(letters=8, bytes=10**6)) == 4
    assert await numbers(tx) == ids[:8]
    large = await bury(tx, letter(99, json.dumps({"owner": "eve"}), payload=b"x" * 5_000))
    assert await dead_letter.bound(tx, LetterRoom(letters=8, bytes=8 * 6_200)) >= 1
    assert (await numbers(tx))[0] == large[0], "the oldest go first"
