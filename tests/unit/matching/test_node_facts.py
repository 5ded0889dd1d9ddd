"""Requirements that a node cannot run, by the names that its pilot reports."""

import pytest

from wms.matching.node_facts import NOTHING_EVALUATED, refuses, wish

PICKY = "other.Disks > my.Needs"
NEEDS = "[ Needs = 2 ]"


def test_a_name_is_that_of_the_requirements_with_the_jobs_own_attributes() -> None:
    names = {wish(PICKY), wish(PICKY, NEEDS), wish(PICKY, "[ Needs = 3 ]"), wish("other.Disks > 2")}
    assert len(names) == 4
    assert wish(PICKY, NEEDS) == wish(PICKY, NEEDS)


def test_where_the_requirements_end_and_the_attributes_begin_is_part_of_the_name() -> None:
    assert wish("a", "b") != wish("ab", "") != wish("", "ab")


@pytest.mark.parametrize(
    ("unfit", "requirements", "refused"),
    [
        ((), PICKY, False),
        ((wish(PICKY, NEEDS),), PICKY, True),
        ((wish(PICKY),), PICKY, False),
        ((wish("other.Disks > 2"), wish(PICKY, NEEDS)), PICKY, True),
        ((NOTHING_EVALUATED,), PICKY, True),
        ((NOTHING_EVALUATED, wish("")), "", False),
    ],
)
def test_a_node_refuses_what_it_reported_and_nothing_else(
    unfit: tuple[str, ...], requirements: str, *, refused: bool
) -> None:
    assert refuses(unfit, requirements, NEEDS if requirements else "") == refused
