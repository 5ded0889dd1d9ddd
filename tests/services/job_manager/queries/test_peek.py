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
from wms.output_text import decoded


@pytest.mark.parametrize("raw", [False, True])
async def test_a_peek_goes_to_the_pilot_and_its_answer_to_who_asked(the_world: World, *, raw: bool) -> None:
    (held,) = await the_world.running()
    async with the_world.db.transaction() as tx:
        from wms.bus.consumer import Delivery

        await the_world._queries.handle(
            tx, [Delivery(user(), PeekJob(query_id="q", client="c", job_id=held[0], raw=raw))]
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
        raw=peek.raw,
        **said,  # type: ignore[arg-type]
    )
    # A pilot with a lease has no right to anybody's inbox: only what was asked of it goes to who asked.
    changes: list[dict[str, Any]] = [
        {"epoch": held[1] + 1},
        {"asker": "bob"},
        {"client": "d"},
        {"ticket": ""},
        {"ticket": "é"},
        {"raw": not raw},
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


LINES = "".join(f"{n:07}\n" for n in range(1_000))


@pytest.mark.parametrize(
    ("whole", "offset", "found"),
    [
        (True, None, (7_984, 8_000, "0000998\n0000999\n")),
        (True, 7_995, (7_995, 8_000, "0999\n")),
        (True, 0, (4_000, 8_000, "0000500\n0000501\n")),
        (True, 9_000, (8_000, 8_000, "")),
        (False, 0, (0, 4_000, "0000500\n0000501\n")),
    ],
)
async def test_positions_in_an_ended_job_s_output_count_all_of_it_on_demand(
    the_world: World, *, whole: bool, offset: int | None, found: tuple[int, int, str]
) -> None:
    (held,) = await the_world.running()
    await the_world.report(finish=(result(held, stdout_tail=LINES[4_000:], stdout_from=4_000),))
    query = PeekJob(query_id="q", job_id=held[0], offset=offset, limit=16, whole=whole)
    output = await the_world.ask(user(), query)
    assert isinstance(output, replies.JobOutput)
    assert (output.offset, output.size, output.text) == found
    assert (output.whole, output.end) == (whole, output.offset + len(output.text))


async def test_a_position_counts_the_bytes_that_cannot_be_shown(the_world: World) -> None:
    (held,) = await the_world.running()
    tail, _ = decoded("caf\u00e9 ".encode("latin-1") * 2 + "\u00e9\ufffd!".encode(), is_end=True)
    await the_world.report(finish=(result(held, stdout_tail=tail, stdout_from=100),))
    output = await the_world.ask(user(), PeekJob(query_id="q", job_id=held[0], offset=108, whole=True))
    assert (output.offset, output.size, output.end) == (108, 116, 116)
    assert output.text == "\ufffd \u00e9\ufffd\ufffd\ufffd!"


async def test_of_an_agent_that_told_no_position_none_is_made_up(the_world: World) -> None:
    (held,) = await the_world.running()
    await the_world.report(finish=(result(held, stdout_tail=LINES[4_000:], stderr_tail="short"),))
    asked = PeekJob(query_id="q", job_id=held[0], whole=True, offset=5_000)
    output = await the_world.ask(user(), asked)
    assert (output.whole, output.offset) == (False, 4_000)
    output = await the_world.ask(user(), msgspec.structs.replace(asked, stream="stderr", offset=1))
    assert (output.whole, output.offset, output.text) == (True, 1, "hort")


@pytest.mark.parametrize(("raw", "text"), [(False, "red \\x07"), (True, "\x1b[31mred\x1b[0m \x07")])
async def test_what_could_take_a_terminal_over_is_shown_raw_on_demand_alone(
    the_world: World, *, raw: bool, text: str
) -> None:
    (held,) = await the_world.running()
    await the_world.report(finish=(result(held, exit_code=0, stdout_tail="\x1b[31mred\x1b[0m \x07"),))
    output = await the_world.ask(user(), PeekJob(query_id="q", job_id=held[0], raw=raw))
    assert isinstance(output, replies.JobOutput)
    assert (output.text, output.end) == (text, 14)
