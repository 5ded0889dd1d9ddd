"""What operators are told of messages that could not be handled, and that nobody else is told anything."""

import msgspec

from tests.services.job_manager.test_dead_letter_orders import FEED, OZ, buried
from tests.services.world import World, user
from wms.db import dead_letter
from wms.db.dead_letter import DeadLetter
from wms.messages import replies
from wms.messages.queries import ListDeadLetters, ShowDeadLetter


async def test_letters_are_listed_page_by_page(the_world: World) -> None:
    numbers = await buried(the_world, 5)
    page = await the_world.ask(OZ, ListDeadLetters(query_id="q", limit=3))
    assert isinstance(page, replies.DeadLetters)
    assert [each.number for each in page.letters] == numbers[:1:-1]
    assert page.letters[0].type == "x"
    rest = await the_world.ask(OZ, ListDeadLetters(query_id="q", limit=3, before=page.before))
    assert [each.number for each in rest.letters] == numbers[1::-1]
    assert rest.before is None
    none = await the_world.ask(OZ, ListDeadLetters(query_id="q", consumer="other"))
    assert none.letters == ()


async def test_a_letter_is_shown_with_all_that_is_kept(the_world: World) -> None:
    payload = b"\x00\xff" + b"a" * 200_000
    letter = DeadLetter(
        partition=0,
        offset=0,
        key=None,
        payload=payload,
        principal=msgspec.json.encode(user("ann")).decode(),
        error="bad",
    )
    async with the_world.db.transaction() as tx:
        await dead_letter.bury(tx, FEED, letter)
    (number,) = await buried(the_world, 0)
    shown = await the_world.ask(OZ, ShowDeadLetter(query_id="q", letter=number))
    assert isinstance(shown, replies.DeadLetterDetail)
    assert shown.payload.startswith("\\x00\\xffaaa")
    assert shown.is_cut
    assert shown.sender is not None
    assert (shown.sender.owner, shown.sender.kind) == ("ann", "user")
    assert (shown.letter.sender, shown.letter.size) == ("ann", len(payload))
    assert len(msgspec.json.encode(shown)) < 900_000
    assert (await the_world.ask(OZ, ShowDeadLetter(query_id="q", letter=number + 1))).code == "NO_SUCH_LETTER"


async def test_only_operators_are_told(the_world: World) -> None:
    (number,) = await buried(the_world)
    for query in (ListDeadLetters(query_id="q"), ShowDeadLetter(query_id="q", letter=number)):
        for who in (user("ann"), user("anna", "job_administrator")):
            assert (await the_world.ask(who, query)).code == "NOT_ALLOWED"
