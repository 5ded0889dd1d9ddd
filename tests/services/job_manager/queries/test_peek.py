"""A peek at the output of a job that runs."""

from typing import Any

import msgspec
import pytest

from services.job_manager.queries.peek import piece
from tests.services.world import World, pilot, result, user
from wms.messages import replies
from wms.messages.queries import PeekJob
from wms.messages.reports import Peeked
from wms.messages.site_inbox import Peek


async def test_a_peek_goes_to_the_pilot_and_its_answer_to_who_asked(the_world: World) -> None:
    (held,) = await the_world.running()
    async with the_world.db.transaction() as tx:
        from wms.bus.consumer import Delivery

        await the_world._queries.handle(
            tx, [Delivery(user(), PeekJob(query_id="q", client="c", job_id=held[0]))]
        )
    (peek,) = [each for each in the_world.told() if isinstance(each, Peek)]
    assert (peek.job_id, peek.epoch, peek.pilot_id) == (*held, "p-1")
    said = {"query_id": "q", "client": "c", "asker": "ann", "stream": "stdout", "offset": 0, "size": 2}
    from wms.bus.consumer import Delivery

    answer = Peeked(
        pilot_id=peek.pilot_id,
        job_id=held[0],
        epoch=held[1],
        text=f"{held[1]}",
        ticket=peek.ticket,
        **said,  # type: ignore[arg-type]
    )
    # A pilot with a lease has no right to anybody's inbox: only what was asked of it goes to who asked.
    changes: list[dict[str, Any]] = [
        {"epoch": held[1] + 1},
        {"asker": "bob"},
        {"client": "d"},
        {"ticket": ""},
        {"ticket": "é"},
    ]
    forged = [msgspec.structs.replace(answer, **each) for each in changes]
    for peeked in (*forged, answer):
        async with the_world.db.transaction() as tx:
            await the_world._reports.handle(tx, [Delivery(pilot(), peeked)])
    assert not the_world.replies("bob")
    (output,) = the_world.replies("ann")
    assert isinstance(output, replies.JobOutput)
    assert output.text == f"{held[1]}"


@pytest.mark.parametrize(
    ("offset", "limit", "found"),
    [
        (None, 100, (0, "abcdéf")),
        (None, 5, (2, "cdéf")),
        (None, 4, (3, "déf")),
        (0, 4, (0, "abcd")),
        (0, 5, (0, "abcd")),
        (4, 100, (4, "éf")),
        (5, 100, (6, "f")),
        (7, 100, (7, "")),
        (10**12, 100, (7, "")),
        (4, 1, (4, "é")),
        (1, 2, (1, "bc")),
        (None, 1, (6, "f")),
    ],
)
def test_a_piece_of_what_was_printed_cuts_no_character(
    offset: int | None, limit: int, found: tuple[int, str]
) -> None:
    assert piece("abcdéf", offset, limit) == found


async def test_an_ended_job_gives_the_piece_that_was_asked_for(the_world: World) -> None:
    (held,) = await the_world.running()
    await the_world.report(finish=(result(held, exit_code=0, stdout_tail="hello"),))
    output = await the_world.ask(user(), PeekJob(query_id="q", job_id=held[0], offset=1, limit=4))
    assert isinstance(output, replies.JobOutput)
    assert (output.offset, output.size, output.text, output.live) == (1, 5, "ello", False)
