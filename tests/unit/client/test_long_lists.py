"""Long lists of parameters are checked value by value, and cut into messages."""

import uuid
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.client import long_lists
from wms.client.submission import messages
from wms.jobdesc import JobDescription
from wms.jobdesc.conflicts import PARAMETERS_LIMIT
from wms.jobdesc.problem import InvalidDescription, Problem
from wms.jobdesc.validation import validate

WORDS = st.text(st.sampled_from("aZ0._-"), max_size=6)
VALUE = WORDS | st.text(st.sampled_from('a ,"\\\u00e9\n\x00\x7f/'), max_size=6) | st.just("w" * 300)
VALUES = st.lists(WORDS, min_size=1, max_size=8) | st.lists(VALUE, min_size=1, max_size=8)
WHERE = st.sampled_from(["{x}", "out-{x}", "{y}", "plain"])


@pytest.fixture(autouse=True, scope="module")
def _every_list_is_long() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_lists, "INLINE_BYTES", 0)
        yield


def sweep(**more: Any) -> JobDescription:
    return JobDescription(executable="true", **more)


def told(description: JobDescription) -> list[Problem]:
    """Return what a user is told to be wrong when a description is submitted."""
    try:
        messages([description], "id", "")
    except InvalidDescription as fault:
        return list(fault.problems)
    return []


@given(VALUES, VALUES | st.none(), WHERE, WHERE, st.sampled_from([None, 3]))
def test_users_are_told_what_each_value_has(
    x: list[str], y: list[str] | None, name: str, output: str, array: int | None
) -> None:
    lists = {"x": tuple(x)} if y is None else {"x": tuple(x), "y": y}
    description = sweep(name=name, output_sandbox=(output,), parameters=lists, array=array)
    assert told(description) == validate(description)


@pytest.mark.parametrize(
    "values",
    [
        (1, 2),
        ("a", 1),
        (uuid.UUID(int=0),),
        (b"YQ",),
        (None,),
        (["a"], "b"),
        ("a", ["b"], "c"),
        "text",
        {"a", "b"},
        {"a": "b"},
        range(3),
        (),
        ("\ud800",),
        ("x" * 40_000,),
        None,
    ],
)
def test_what_are_no_lists_of_texts_is_told_where_it_is(values: Any) -> None:
    description = sweep(arguments=("{x}",), parameters={"x": values})
    assert told(description) == validate(description) != []


@pytest.mark.parametrize("name", ["n", "a b", "", 1, "x" * 65, "\u00e9"])
def test_names_that_no_parameter_has(name: Any) -> None:
    description = sweep(parameters={name: ("a", "b")})
    assert told(description) == validate(description) != []


def test_what_else_is_wrong_is_told_too() -> None:
    description = sweep(parameters={"x": ("a", "b")}, cpu_time=0, environment={"A": "\ud800"})
    assert told(description) == validate(description) != []


@pytest.mark.parametrize(
    ("count", "value"), [(1_000_001, "v"), (PARAMETERS_LIMIT // 700 + 1, "v" * 700), (1_000, "v" * 40_000)]
)
def test_limits_hold_of_long_lists(count: int, value: str) -> None:
    description = sweep(parameters={"x": (value,) * count})
    assert told(description)[:1] == validate(description)[:1] != []


def test_long_lists_travel_a_thousand_jobs_a_chunk() -> None:
    values = tuple(map(str, range(10_500)))
    sent = messages([sweep(arguments=("{x}",), parameters={"x": values})], "id", "")
    (submit,) = sent.submits
    assert msgspec.json.decode(submit.jobs[0]) == {
        "executable": "true",
        "arguments": ["{x}"],
        "array": 10_500,
    }
    assert submit.lists[0].parts == tuple(part.command_id for part in sent.values)
    chunks = [msgspec.json.decode(chunk["x"]) for part in sent.values for chunk in part.chunks]
    assert tuple(value for chunk in chunks for value in chunk) == values
    assert [*map(len, chunks)] == [1_000] * 10 + [500]


def test_one_value_among_many_that_is_no_archive_is_told() -> None:
    archives = (f"{'a' * 64}:5",) * 2_000
    description = sweep(input_parameters=("x",), parameters={"x": (*archives, "none", *archives)})
    (problem,) = told(description)
    assert problem.place == "parameters.x[2000]"
