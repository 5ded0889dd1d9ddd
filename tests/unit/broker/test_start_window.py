"""When a job may start."""

from datetime import UTC, datetime, timedelta

from wms.broker.start_window import StartWindow, start_window
from wms.jobdesc.preferences import JobPreferences

SENT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TEN = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)


def test_without_preferences_a_job_may_start_at_once_and_whenever() -> None:
    assert start_window(None, SENT) == start_window(JobPreferences(), SENT) == StartWindow(SENT)


def test_relative_times_count_from_the_submission_and_from_the_earliest_start() -> None:
    said = JobPreferences(earliest_start_after=60.0, latest_start_after=1_800.0)
    found = start_window(said, SENT)
    assert found.earliest == SENT + timedelta(seconds=60)
    assert found.latest == SENT + timedelta(seconds=1_860)


def test_absolute_times_go_before_relative_ones() -> None:
    said = JobPreferences(
        earliest_start=TEN,
        earliest_start_after=60.0,
        latest_start=TEN + timedelta(hours=1),
        latest_start_after=1.0,
    )
    assert start_window(said, SENT) == StartWindow(TEN, TEN + timedelta(hours=1))


def test_the_figure_of_the_reference_starts_within_half_an_hour_of_its_earliest_start() -> None:
    said = JobPreferences(earliest_start=TEN, latest_start_after=1_800.0)
    found = start_window(said, SENT)
    assert not found.is_open(TEN - timedelta(seconds=1))
    assert found.is_open(TEN)
    assert found.is_open(TEN + timedelta(minutes=30))
    assert found.is_over(TEN + timedelta(minutes=30, seconds=1))
