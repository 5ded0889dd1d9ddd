"""Points of what a payload used: how many, how far apart, and that no peak of memory is lost between them."""

import itertools

from services.job_agent.payload.usage_curve import SPACING_SECONDS, UsageCurve
from wms.messages.reports import POINTS_LIMIT

MIB = 1024 * 1024


def sampled(seconds: int, every: float = 1.0) -> UsageCurve:
    curve = UsageCurve()
    for number in range(int(seconds / every)):
        curve.add(number * every, number * every / 2, MIB)
    return curve


def test_points_are_some_seconds_apart_and_tell_the_cpu_time_until_then() -> None:
    points = sampled(21).points
    assert points == [
        (0, 0, 1024),
        (5, 2_500, 1024),
        (10, 5_000, 1024),
        (15, 7_500, 1024),
        (20, 10_000, 1024),
    ]


def test_a_long_payload_has_no_more_points_and_they_cover_all_of_it() -> None:
    for hours in (1, 10, 100):
        points = sampled(hours * 3_600, every=2.0).points
        assert POINTS_LIMIT // 2 <= len(points) <= POINTS_LIMIT
        assert points[0][0] == 0
        assert points[-1][0] > hours * 3_600 * 0.9
        gaps = [later[0] - earlier[0] for earlier, later in itertools.pairwise(points)]
        assert max(gaps) <= 2 * min(gaps) + SPACING_SECONDS


def test_a_peak_between_two_points_is_in_the_next_one_and_outlives_thinning() -> None:
    curve = UsageCurve()
    for second in range(7_200):
        curve.add(second, second, 9 * MIB if second == 1_003 else MIB)
    assert max(point[2] for point in curve.points) == 9 * 1024
    assert [point[0] for point in curve.points] == sorted(point[0] for point in curve.points)


def test_news_are_told_once() -> None:
    curve = UsageCurve()
    curve.add(0, 0, 0)
    assert curve.news() == ()
    curve.add(5, 1, 0)
    assert curve.news() == ((0, 0, 0), (5, 1_000, 0))
    assert curve.news() == ()
