"""Single values: numbers with a fraction, times, URLs and words."""

from datetime import UTC, datetime

import pytest

from wms.jobdesc import value_rules


@pytest.mark.parametrize("value", [True, "1", float("nan"), float("inf"), 10**400, -0.1])
def test_a_number_is_finite_and_in_its_range(value: object) -> None:
    assert value_rules.real(0, 10)(value)


@pytest.mark.parametrize("value", [0, 10, 2.5])
def test_whole_numbers_count_too(value: object) -> None:
    assert not value_rules.real(0, 10)(value)


@pytest.mark.parametrize("value", [datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00Z"])
def test_a_time_has_a_zone(value: object) -> None:
    assert not value_rules.moment(value)
    assert value_rules.moment(datetime(2026, 1, 1))


@pytest.mark.parametrize(
    "value", ["https://user@host/a", "https://user:pw@host/a", "http:", "ftp://a", "a b"]
)
def test_a_url_has_a_known_scheme_and_no_user(value: str) -> None:
    assert value_rules.url(["https", "http"])(value)


def test_an_at_sign_in_a_path_is_fine() -> None:
    assert not value_rules.url(["https"])("https://host/a@b?c=d@e")


def test_a_word_is_one_of_a_list() -> None:
    ((_, message, _),) = value_rules.one_of("", "pilot")("mail")
    assert message == 'must be "" or "pilot", not the text "mail"'
