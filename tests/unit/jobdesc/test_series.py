"""Parameters by start, step and factor, as DIRAC's parametric jobs have them."""

import json

import pytest

from wms.jobdesc import read_json, read_toml
from wms.jobdesc.array import expand
from wms.jobdesc.problem import InvalidDescription


def toml(parameters: str, more: str = "") -> bytes:
    return f'executable = "run"\narguments = ["{{x}}"]\n{more}\n[parameters]\n{parameters}\n'.encode()


@pytest.mark.parametrize(
    ("said", "values"),
    [
        ("x = {start = 10, step = 5, count = 4}", ("10", "15", "20", "25")),
        ("x = {start = 1, factor = 2, count = 5}", ("1", "2", "4", "8", "16")),
        ("x = {start = 10, step = 5, factor = 2, count = 3}", ("10", "25", "55")),
        ("x = {start = 1.5, step = 0.25, count = 3}", ("1.5", "1.75", "2.0")),
        ("x = {start = 5, step = -5, count = 3}", ("5", "0", "-5")),
        ("x = {count = 2}", ("0", "0")),
    ],
)
def test_each_value_is_the_one_before_times_the_factor_plus_the_step(
    said: str, values: tuple[str, ...]
) -> None:
    [description] = read_toml(toml(said))
    assert description.parameters == {"x": values}
    assert [expand(description, n).arguments[0] for n in range(len(values))] == list(values)


def test_an_array_says_how_many_values_there_are_and_lists_stand_beside_series() -> None:
    [description] = read_toml(toml('x = {start = 1, step = 1}\ny = ["a", "b", "c"]', "array = 3"))
    assert description.parameters == {"x": ("1", "2", "3"), "y": ("a", "b", "c")}
    [described] = read_json(
        json.dumps({"executable": "run", "array": 2, "parameters": {"x": {"start": 7}}}).encode()
    )
    assert described.parameters == {"x": ("7", "7")}


def test_defaults_may_have_a_series() -> None:
    text = b'[defaults]\nexecutable = "run"\n[defaults.parameters]\nx = {step = 1, count = 2}\n[[job]]\n[[job]]\nname = "b"\n'
    assert [each.parameters for each in read_toml(text)] == [{"x": ("0", "1")}] * 2


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ("x = {start = 1}", "parameters.x"),
        ('x = {start = "1", count = 2}', "parameters.x.start"),
        ("x = {start = true, count = 2}", "parameters.x.start"),
        ("x = {start = inf, count = 2}", "parameters.x.start"),
        ("x = {start = 1, count = 0}", "parameters.x.count"),
        ("x = {start = 1, count = 1000001}", "parameters.x.count"),
        ("x = {begin = 1, count = 2}", "parameters.x.begin"),
        ("x = {start = 2, factor = 1000, count = 50}", "parameters.x"),
        ("x = {start = 1e200, count = 3}", "parameters.x.start"),
        ("x = {count = 2}\ny = {count = 3}", "parameters.y"),
    ],
)
def test_what_is_no_series_is_told_with_its_place(said: str, place: str) -> None:
    with pytest.raises(InvalidDescription) as refusal:
        read_toml(toml(said))
    assert [each.place for each in refusal.value.problems] == [place]
