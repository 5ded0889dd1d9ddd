"""The window of an offer in the database's time."""

from datetime import timedelta

from tests.unit.agreement.offers import NOW, at, terms

HORIZON = timedelta(days=1)


def test_without_a_window_it_starts_now_or_as_late_as_the_site_plans() -> None:
    assert terms().first_start(NOW) == NOW
    assert terms().last_start(NOW, HORIZON) == NOW + HORIZON


def test_it_never_starts_in_the_past_nor_beyond_the_horizon() -> None:
    offer = terms(earliest_start=at(-500), latest_start=at(10 * 86_400))
    assert offer.first_start(NOW) == NOW
    assert offer.last_start(NOW, HORIZON) == NOW + HORIZON


def test_starts_and_durations_are_whole_seconds_not_before_what_was_asked() -> None:
    offer = terms(earliest_start=at(10.25), duration_seconds=59.1)
    assert offer.first_start(NOW) == at(11)
    assert offer.duration == timedelta(seconds=60)
