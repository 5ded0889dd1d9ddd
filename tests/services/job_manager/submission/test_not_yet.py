"""Jobs that would silently be other ones are refused, each with what to do instead."""

import pytest

from tests.services.world import World
from wms.messages import replies


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"inputs": [{"name": "a", "sources": ["https://h/a"]}]},
            "jobs[0].inputs: are not fetched by URL yet",
        ),
        (
            {"outputs": [{"name": "a", "targets": ["https://h/a"]}]},
            "jobs[0].outputs: are not sent to URLs yet",
        ),
        ({"stdin": "cards"}, "jobs[0].stdin: is not read yet"),
    ],
)
async def test_what_no_agent_does_yet_is_refused(
    the_world: World, fields: dict[str, object], said: str
) -> None:
    reply = await the_world.submit(fields)
    assert isinstance(reply, replies.Refused)
    assert any(each.startswith(said) for each in reply.details)
    assert not await the_world.sql("select from job")


async def test_names_of_the_printed_files_are_accepted(the_world: World) -> None:
    reply = await the_world.submit({"stdout": "out.txt", "stderr": "err.txt"})
    assert isinstance(reply, replies.Submitted)
