"""Bars of what a job used over time."""

from msgspec.structs import replace

from tests.unit.messages.examples import ATTEMPT
from wms.cli.usage_curve import sparkline, usage_lines


def test_bars_are_as_high_as_their_values() -> None:
    assert sparkline([0, 1, 2, 7]) == "▁▂▃█"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([-1, 5]) == "▁█"
    assert sparkline([]) == ""


def test_processors_are_between_points_and_memory_is_at_them() -> None:
    points = ((0, 0, 1_024), (10, 20_000, 2_048), (20, 30_000, 1_024))
    assert usage_lines(replace(ATTEMPT, usage_points=points)) == [
        "cpu     █▅  at most 2.0 processors in 20s",
        "memory  █▅  at most 2.0 MiB",
    ]


def test_an_attempt_of_moments_shows_nothing() -> None:
    assert usage_lines(ATTEMPT) == []
    assert usage_lines(replace(ATTEMPT, usage_points=((0, 0, 1),))) == []
