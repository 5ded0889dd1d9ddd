"""Placeholders and series of parametric jobs."""

import pytest

from tests.unit.jobdesc.languages.reading import one
from wms.jobdesc import InvalidDescription
from wms.jobdesc.languages.jdl import read


@pytest.mark.parametrize(
    ("parameters", "values"),
    [
        ("Parameters = 3;", ["0", "0", "0"]),
        ("Parameters = 3; ParameterStart = 1; ParameterStep = 2;", ["1", "3", "5"]),
        ("Parameters = 3; ParameterStart = 1; ParameterFactor = 3;", ["1", "3", "9"]),
        ('Parameters = {"x", "y"};', ["x", "y"]),
        ("Parameters = {1, 2.5};", ["1", "2.5"]),
    ],
)
def test_series_and_lists(parameters: str, values: list[str]) -> None:
    assert one(read, f'Executable = "a"; Arguments = "%s"; {parameters}')["parameters"] == {
        "parameter": values
    }


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ("ParameterStart = 1;", "does not say how many jobs"),
        ('Parameters = 2; ParameterStep = "x";', "must be a number"),
        ("Parameters = 2000000;", "1,000,000"),
    ],
)
def test_series_that_are_none(parameters: str, said: str) -> None:
    with pytest.raises(InvalidDescription, match=said):
        one(read, f'Executable = "a"; {parameters}')
