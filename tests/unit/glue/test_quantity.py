"""Numbers that are none, and minutes that are no seconds."""

import pytest

from wms.glue import quantity
from wms.glue.quantity import UNKNOWN, UNLIMITED


@pytest.mark.parametrize("placeholder", [999_999_999, 9_999_999_999, 999_999_999_999_999_999])
def test_all_nines_are_unknown_whatever_they_count(placeholder):
    for read in (
        quantity.count,
        quantity.limit,
        quantity.seconds,
        quantity.minutes,
        quantity.size,
        quantity.wait,
    ):
        assert read(placeholder) is UNKNOWN


def test_templates_that_nobody_filled_in_are_unknown():
    assert quantity.count(444_444) is UNKNOWN
    assert quantity.wait(2_146_660_842) is UNKNOWN
    assert quantity.count(-1) is UNKNOWN


@pytest.mark.parametrize("largest", [2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1])
def test_the_largest_integers_are_no_limit_and_no_count(largest):
    assert quantity.limit(largest) is UNLIMITED
    assert quantity.seconds(largest) is UNLIMITED
    assert quantity.minutes(largest) is UNLIMITED
    assert quantity.count(largest) is UNKNOWN


def test_minus_one_is_no_limit_and_zero_none_that_was_set():
    assert quantity.limit(-1) is quantity.minutes(-1) is UNLIMITED
    assert quantity.limit(0) is quantity.seconds(0) is UNKNOWN
    assert quantity.count(0) == 0


def test_five_nines_limit_no_jobs_but_are_seconds_like_others():
    assert quantity.limit(99_999) is UNLIMITED
    assert quantity.limit(9_999) == 9_999
    assert quantity.seconds(99_999) == 99_999


def test_minutes_become_seconds_but_placeholders_are_not_multiplied():
    assert quantity.minutes(2_880) == 172_800
    assert quantity.seconds(2_880) == 2_880
    # 999,999,999 s that somebody divided by 60, and minutes that somebody multiplied.
    assert quantity.minutes(16_666_666) is UNLIMITED
    assert quantity.seconds(59_999_999_940) is UNLIMITED


def test_seconds_are_told_in_minutes_rounded_down_but_never_as_nothing():
    assert quantity.in_minutes(119) == 1
    assert quantity.in_minutes(30) == 1
    assert quantity.in_minutes(UNLIMITED) is UNLIMITED


def test_a_special_value_compares_with_no_number():
    with pytest.raises(TypeError):
        assert quantity.count(444_444) < 10  # type: ignore[operator] # that the type checker says so, too, is the point


def test_what_is_told_is_read_as_the_same():
    assert quantity.limit(quantity.told(UNLIMITED) or 0) is UNLIMITED
    assert quantity.seconds(quantity.told(UNLIMITED) or 0) is UNLIMITED
    assert quantity.told(UNKNOWN) is None
    assert quantity.count(quantity.NOT_KNOWN) is UNKNOWN


def test_the_least_of_several_limits_is_of_those_that_are_numbers():
    assert quantity.least([UNKNOWN, 7, UNLIMITED, 5]) == 5
    assert quantity.least([UNKNOWN, UNLIMITED]) is None
