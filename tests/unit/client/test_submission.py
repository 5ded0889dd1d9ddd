from typing import Any

import msgspec
import pytest

from wms.client.client import Client
from wms.client.executor import Executor
from wms.client.submission import BYTES_LIMIT, Submission, messages
from wms.errors import Rejected
from wms.jobdesc import JobDescription
from wms.jobdesc.problem import InvalidDescription
from wms.messages.commands import SUBMIT_LIMIT
from wms.messages.wire import encode

ONE = JobDescription(executable="echo")


def test_many_descriptions_go_in_several_messages_with_ids_of_their_own() -> None:
    parts = messages([ONE] * (2 * SUBMIT_LIMIT + 1), "x", "me").submits
    assert [(part.command_id, len(part.jobs)) for part in parts] == [
        ("x/0", 2_000),
        ("x/1", 2_000),
        ("x/2", 1),
    ]
    assert messages([ONE] * (2 * SUBMIT_LIMIT + 1), "x", "me").submits == parts


def test_what_is_no_description_is_told() -> None:
    wrong: Any = "echo hi"
    with pytest.raises(TypeError, match="expected JobDescription, or a sequence of it, not str"):
        messages(wrong, "x", "me")


def test_large_descriptions_go_in_smaller_messages() -> None:
    large = JobDescription(executable="echo", arguments=("x" * 30_000,) * 4)
    parts = messages([large] * 20, "x", "me").submits
    assert sum(len(part.jobs) for part in parts) == 20
    assert max(len(encode(part)) for part in parts) <= BYTES_LIMIT + 1_000
    assert min(len(part.jobs) for part in parts[:-1]) == 7


def test_every_problem_of_every_description_is_told_before_anything_goes() -> None:
    fine = JobDescription(executable="echo", arguments=("1",), sites=("A",))
    wrong = [
        msgspec.structs.replace(fine, **changes)
        for changes in (
            {"arguments": ("\x00",)},
            {"environment": {"A": "\ud800"}},
            {"environment": {1j: "b"}},
            {"cpu_time": 0},
            {"sites": "A"},
            {"name": 7},
        )
    ]
    with pytest.raises(InvalidDescription) as refusal:
        messages([fine, *wrong, fine], "x", "me")
    assert sorted({each.place.partition(".")[0] for each in refusal.value.problems}) == [
        f"jobs[{n}]" for n in range(1, 7)
    ]


def test_a_list_that_stands_for_a_tuple_travels_as_one() -> None:
    """Whether one of its kind was sent before makes no difference."""
    lists = JobDescription(executable="echo", arguments=["1"], sites=["B"])  # type: ignore[arg-type]
    tuples = JobDescription(executable="echo", arguments=("1",), sites=("B",))
    for one in (lists, tuples, lists):
        (submit,) = messages([one], "x", "me").submits
        assert msgspec.json.decode(submit.jobs[0], type=JobDescription) == tuples


def test_arrays_are_shared_out_so_that_no_message_makes_too_many_jobs() -> None:
    array = msgspec.structs.replace(ONE, array=600_000)
    assert [len(part.jobs) for part in messages([array, array, array], "x", "me").submits] == [1, 1, 1]


@pytest.mark.parametrize("command_id", ["", "x" * 181, "a\nb"])
def test_ids_that_no_command_can_carry(command_id: str) -> None:
    with pytest.raises(Rejected, match="BAD_ID"):
        messages([ONE], command_id, "me")


def test_a_submission_knows_its_ids_in_order() -> None:
    taken = Submission(id="x", ids=((5, 6), (1, 2), (7, 7)))
    assert (taken.count, list(taken.job_ids()), str(taken)) == (5, [5, 6, 1, 2, 7], "1-2,5-7")
    assert taken.selector().ids == ((1, 2), (5, 7))


def test_long_lists_of_parameters_go_before_what_names_them_in_whole_thousands() -> None:
    values = tuple(f"value-{n}" for n in range(123_456))
    sweep = JobDescription(executable="echo", arguments=("{x}",), parameters={"x": values})
    sent = messages([ONE, sweep], "x", "me")
    chunks = [msgspec.json.decode(chunk["x"]) for part in sent.values for chunk in part.chunks]
    assert tuple(value for chunk in chunks for value in chunk) == values
    assert {len(chunk) for chunk in chunks[:-1]} == {1_000}
    assert len(sent.values) < 5
    assert max(len(encode(part)) for part in (*sent.values, *sent.submits)) <= BYTES_LIMIT
    ((lists,),) = [part.lists for part in sent.submits]
    assert (lists.job, lists.parts) == (1, tuple(part.command_id for part in sent.values))
    assert msgspec.json.decode(sent.submits[0].jobs[1]) == {
        "executable": "echo",
        "arguments": ["{x}"],
        "array": 123_456,
    }
    assert messages([ONE, sweep], "x", "me") == sent


def test_values_too_large_to_travel_are_refused_with_a_way_out() -> None:
    sweep = JobDescription(executable="echo", parameters={"x": ("y" * 2_000,) * 1_000})
    with pytest.raises(Rejected, match="--input"):
        messages([sweep], "x", "me")


async def test_map_and_executor_tell_what_is_no_description_too() -> None:
    wrong: Any = "echo"
    with pytest.raises(TypeError, match="expected JobDescription"):
        Executor(description=wrong)
    client = Client(wrong, wrong, timeout=1)
    with pytest.raises(TypeError, match="expected JobDescription"):
        await anext(client.map(wrong, {"x": ["1"]}))
