"""Reasons: their codes, groups and advice."""

from wms.job.reasons import ADVICE, UNCOUNTED, Code


def test_advice_and_groups_are_of_known_codes():
    assert set(ADVICE) <= set(Code)
    assert set(UNCOUNTED) <= set(Code)
