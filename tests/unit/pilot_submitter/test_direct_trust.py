"""Whom a site trusts with jobs that are sent directly."""

import pytest

from services.pilot_submitter.direct_trust import distrust_words, pattern_fault, trusts
from wms.matching.grouping import Requirements


def job(vo: str = "atlas", group: str = "prod", owner: str = "ann") -> Requirements:
    return Requirements(owner=owner, owner_group=group, vo=vo, setup="default", cpu_segment=500)


@pytest.mark.parametrize(
    ("patterns", "trusted"),
    [
        ((), False),
        (("*/*/*",), True),
        (("atlas/prod/*",), True),
        (("cms/*/*", "atlas/*/ann"), True),
        (("atlas/*/bob",), False),
        (("Atlas/*/*",), False),
    ],
)
def test_each_part_of_a_pattern_is_matched(patterns: tuple[str, ...], *, trusted: bool) -> None:
    assert trusts(patterns, job()) == trusted


def test_a_name_with_slashes_passes_for_nobody_else() -> None:
    assert not trusts(["atlas/*/ann"], job(group="any", owner="x/ann"))
    assert trusts(["atlas/*/idp#*"], job(owner="idp#a/b"))


def test_a_pattern_names_vo_group_and_owner() -> None:
    assert pattern_fault("atlas/prod/*") == ""
    for wrong in ("ann", "atlas/ann", "atlas//ann", "*"):
        assert "VO/GROUP/OWNER" in pattern_fault(wrong)


def test_the_reason_names_the_owner_and_what_helps() -> None:
    words = distrust_words(job())
    assert "ann in atlas/prod" in words
    assert "leave out `dispatch`" in words
