"""Durations, sizes and expressions."""

import pytest

from wms.jobdesc.languages import common_values


@pytest.mark.parametrize(
    ("text", "unit", "said"),
    [
        ("90", "seconds", 90),
        ("90", "minutes", 5_400),
        ("2 hours", "minutes", 7_200),
        ("1 day, 6 hours", "minutes", 108_000),
        ("1.5 h", "minutes", 5_400),
        ("", "minutes", None),
        ("soon", "minutes", None),
        ("5 parsecs", "minutes", None),
    ],
)
def test_durations(text: str, unit: str, said: int | None) -> None:
    assert common_values.seconds(text, unit) == said


@pytest.mark.parametrize(
    ("text", "unit", "said"),
    [
        ("2000", "m", 2_000),
        ("2 GB", "m", 2_048),
        ("1048576", "k", 1_024),
        ("1", "", 1),
        ("x", "m", None),
        ("1.5G", "m", 1_536),
    ],
)
def test_sizes(text: str, unit: str, said: int | None) -> None:
    assert common_values.mebibytes(text, unit) == said


def test_texts_are_quoted_for_classads() -> None:
    assert common_values.equal("A", 'x"\\') == 'other.A == "x\\"\\\\"'
    assert common_values.software("R") == 'member("R", other.GlueHostApplicationSoftwareRunTimeEnvironment)'


@pytest.mark.parametrize(("text", "said"), [("yes", True), ("FALSE", False), ("maybe", None)])
def test_truths(text: str, said: bool | None) -> None:  # noqa: FBT001 - an expected value
    assert common_values.truth(text) is said


@pytest.mark.parametrize(("text", "said"), [("1.5", 1.5), ("nan", None), ("inf", None), ("x", None)])
def test_numbers(text: str, said: float | None) -> None:
    assert common_values.real(text) == said
