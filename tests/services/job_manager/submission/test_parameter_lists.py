"""Lists of parameters too long for a message: they come in parts, and are judged as in one."""

from typing import Any

import msgspec
import pytest

from tests.services.job_manager.test_sweeps import blocks
from tests.services.world import World, user
from wms.client.submission import Messages, messages
from wms.ids import CommandId
from wms.jobdesc import JobDescription
from wms.messages import replies
from wms.messages.commands import AddChunks, LongLists, Submit
from wms.messages.queries import ShowJob


async def test_unequal_lists_are_refused_with_both_lengths(the_world: World) -> None:
    reply = await the_world.submit({"parameters": {"a": ["1", "2", "3"], "b": ["1", "2"]}})
    assert isinstance(reply, replies.Refused)
    assert "2" in str(reply)
    assert "3" in str(reply)


def long_sweep(jobs: int, **more: Any) -> Messages:
    description = JobDescription(
        executable="true",
        arguments=("{file}", "{seed}"),
        parameters={
            "file": tuple(f"file-number-{n}.root" for n in range(jobs)),
            "seed": tuple(str(7 * n) for n in range(jobs)),
        },
        **more,
    )
    return messages([description], "long", "")


def with_first(part: AddChunks, name: str, value: str) -> AddChunks:
    """Return the part with another first value."""
    first, *others = part.chunks
    values = [value, *msgspec.json.decode(first[name])[1:]]
    return msgspec.structs.replace(
        part, chunks=({**first, name: msgspec.Raw(msgspec.json.encode(values))}, *others)
    )


async def test_lists_too_long_for_a_message_come_in_parts(the_world: World) -> None:
    sent = long_sweep(100_000, name="{seed}")
    assert len(sent.values) > 3
    kept = await the_world.command(user(), *sent.values)
    assert {type(each) for each in kept} == {replies.ValuesKept}
    (reply,) = await the_world.command(user(), *sent.submits)
    assert isinstance(reply, replies.Submitted), reply
    ((first, last),) = reply.ids
    assert last - first + 1 == 100_000
    for n in (0, 999, 1_000, 54_321, 99_999):
        shown = await the_world.ask(user(), ShowJob(query_id="q", job_id=first + n))
        assert shown.parameters == {"file": f"file-number-{n}.root", "seed": str(7 * n)}
        assert shown.job.name == str(7 * n)
    again = await the_world.command(user(), *sent.values, *sent.submits)
    assert isinstance(again[-1], replies.Submitted)
    assert (again[-1].ids, again[-1].repeated) == (reply.ids, True)
    assert not await the_world.sql("select from description where body::text = 'null'")


@pytest.mark.parametrize("wrong", ["part missing", "another's", "count", "used", "order"])
async def test_parts_that_do_not_make_the_lists_are_refused(the_world: World, wrong: str) -> None:
    sent = long_sweep(60_500)
    (submit,) = sent.submits
    (lists,) = submit.lists
    who = user("bob") if wrong == "another's" else user()
    await the_world.command(who, *sent.values)
    match wrong:
        case "part missing":
            submit = msgspec.structs.replace(submit, lists=(msgspec.structs.replace(lists, parts=("x",)),))
        case "count":
            submit = msgspec.structs.replace(
                submit, jobs=(msgspec.Raw(bytes(submit.jobs[0]).replace(b"60500", b"50500")),)
            )
        case "used":
            await the_world.command(user(), submit)
            submit = msgspec.structs.replace(submit, command_id=CommandId("other"))
        case "order":
            parts = tuple(reversed(lists.parts))
            submit = msgspec.structs.replace(submit, lists=(msgspec.structs.replace(lists, parts=parts),))
    before = await blocks(the_world)
    (reply,) = await the_world.command(user(), submit)
    assert isinstance(reply, replies.Refused), reply
    assert reply.code in ("LISTS_MISSING", "LISTS_UNEQUAL")
    assert await blocks(the_world) == before


@pytest.mark.parametrize("value", ["../x", "a/\u00e9"])
async def test_values_that_lead_out_are_refused_in_parts_as_in_one(the_world: World, value: str) -> None:
    sent = long_sweep(40_000, output_sandbox=("{file}",))
    bad = with_first(sent.values[1], "file", value)
    await the_world.command(user(), sent.values[0], bad, *sent.values[2:])
    (reply,) = await the_world.command(user(), *sent.submits)
    assert isinstance(reply, replies.Refused)
    assert "no plain part of a file name" in str(reply.details)


async def test_a_value_that_is_no_archive_is_refused_in_parts_as_in_one(the_world: World) -> None:
    archive = f"{'a' * 64}:5"
    description = JobDescription(
        executable="true", input_parameters=("file",), parameters={"file": (archive,) * 8_000}
    )
    sent = messages([description], "long", "")
    await the_world.command(user(), with_first(sent.values[0], "file", "none"))
    (reply,) = await the_world.command(user(), *sent.submits)
    assert isinstance(reply, replies.Refused)
    assert "is no archive" in str(reply.details)


FULL = msgspec.json.encode(["v"] * 1_000)


@pytest.mark.parametrize(
    ("fault", "chunks"),
    [
        ("Expected `str`", [{"x": b"[1,2]"}]),
        ("Expected `array`", [{"x": b'{"a":1}'}]),
        ("got `array`", [{"x": b"[" * 500 + b"]" * 500}]),
        ("can't decode", [{"x": b'["\xff"]'}]),
        ("control or unprintable", [{"x": b'["a\\nb","\\u0000"]'}]),
        ("control or unprintable", [{"x": b'["\x7f"]'}]),
        ("at most 32,768", [{"x": b'["' + b"y" * 40_000 + b'"]'}]),
        ("no name here", [{"x y": b'["a"]'}]),
        ("at most 20", [{f"x{n}": b'["a"]' for n in range(21)}]),
        ("has 1 values where", [{"x": b'["a","b"]', "y": b'["a"]'}]),
        ("must have 1 to", [{"x": b"[]"}]),
        ("LISTS_UNEQUAL", []),
        ("LISTS_UNEQUAL", [{}]),
        ("LISTS_UNEQUAL", [{"x": b'["a"]'}, {"x": FULL}]),
        ("LISTS_UNEQUAL", [{"x": FULL[:-1] + b',"v"]'}]),
        ("LISTS_UNEQUAL", [{"x": FULL}, {"y": FULL}]),
        ("LISTS_UNEQUAL", [{"x": b'["a"]', "y": FULL}, {"x": FULL, "y": b'["a"]'}]),
    ],
)
async def test_what_are_no_lists_of_texts_is_refused_and_the_rest_is_kept(
    the_world: World, fault: str, chunks: list[dict[str, bytes]]
) -> None:
    raw = [{name: msgspec.Raw(values) for name, values in chunk.items()} for chunk in chunks]
    wrong = AddChunks(command_id=CommandId("wrong"), chunks=tuple(raw))
    fine = AddChunks(command_id=CommandId("fine"), chunks=({"x": msgspec.Raw(FULL)},))
    reply, kept = await the_world.command(user(), wrong, fine)
    assert isinstance(reply, replies.Refused), reply
    assert fault in " ".join((reply.code, reply.message, *reply.details))
    assert isinstance(kept, replies.ValuesKept)


async def test_values_come_back_as_they_were_given(the_world: World) -> None:
    odd = ['"', "\\", ",", '","', "[]", " ", "", "\u00e9", "tab\t", "{x}", "a,b c"] * 100
    sweep = JobDescription(
        executable="true", arguments=("{x}",), parameters={"x": tuple(odd), "y": ("y" * 400,) * len(odd)}
    )
    sent = messages([sweep], "odd", "")
    assert sent.values
    *_, reply = await the_world.command(user(), *sent.values, *sent.submits)
    assert isinstance(reply, replies.Submitted), reply
    ((first, _),) = reply.ids
    for n in (*range(11), 1_099):
        shown = await the_world.ask(user(), ShowJob(query_id="q", job_id=first + n))
        assert shown.parameters["x"] == odd[n]


async def test_the_same_id_with_other_values_is_refused(the_world: World) -> None:
    sent = long_sweep(40_000)
    await the_world.command(user(), *sent.values)
    (again,) = await the_world.command(user(), sent.values[0])
    assert isinstance(again, replies.ValuesKept)
    (other,) = await the_world.command(user(), with_first(sent.values[0], "file", "other"))
    assert isinstance(other, replies.Refused)
    assert other.code == "ID_REUSED"


async def test_all_values_together_are_bounded_however_many_parts_bring_them(the_world: World) -> None:
    chunk = {"x": msgspec.Raw(msgspec.json.encode(["v" * 850] * 1_000))}
    parts = [AddChunks(command_id=CommandId(f"part-{n}"), chunks=(chunk,)) for n in range(80)]
    await the_world.command(user(), *parts)
    job = msgspec.Raw(b'{"executable": "true", "arguments": ["{x}"], "array": 80000}')
    lists = (LongLists(job=0, parts=tuple(each.command_id for each in parts)),)
    (reply,) = await the_world.command(user(), Submit(command_id=CommandId("c"), jobs=(job,), lists=lists))
    assert isinstance(reply, replies.Refused)
    assert "68,000,000 bytes" in str(reply.details)
