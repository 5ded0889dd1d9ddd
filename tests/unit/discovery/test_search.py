"""Discovery without a network: addresses, documents, the walk, what is remembered, and who is let in."""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.discovery.grid import element, index
from wms.discovery.address import Address
from wms.discovery.search import Bounds, Found, Search
from wms.discovery.server_answers import ServerAnswer

GRID = {
    "top": ["nordic", "east", "top"],
    "nordic": ["sweden", "norway", "top"],
    "east": ["norway", "nordic"],
    "sweden": [],
    "norway": ["nordic"],
}
"""Which indexes lead to which: with circles, and two ways to some."""


def tells(name: str) -> ServerAnswer:
    return ServerAnswer(elements=(element(name), element("common")), leads=tuple(map(index, GRID[name])))


def walked(order: tuple[str, ...]) -> tuple[Found, list[str]]:
    """Walk the grid, servers that are asked answering by their rank in an order; return what was found and who was asked."""
    walk = Search(Bounds())
    asked = [each.host.partition(".")[0] for each in walk.begin([index("top")])]
    open_ = list(asked)
    while open_:
        name = min(open_, key=order.index)
        open_.remove(name)
        more = [each.host.partition(".")[0] for each in walk.answered(index(name), tells(name), "answered")]
        asked += more
        open_ += more
    return walk.report(), asked


@pytest.mark.parametrize("order", list(itertools.permutations(GRID)))
def test_each_is_asked_once_and_found_the_same_whoever_was_faster(order: tuple[str, ...]) -> None:
    found, asked = walked(order)
    assert sorted(asked) == sorted(GRID)
    assert [each.site for each in found.elements] == ["top", "common", "nordic", "sweden", "norway", "east"]
    assert [each.outcome for each in found.visits] == ["answered"] * 5
    assert {each.element.site for each in found.doubles} == {"common"}


@pytest.mark.parametrize(
    ("bounds", "asked", "refused"),
    [
        (Bounds(servers=50, depth=100), 50, "over 50 servers"),
        (Bounds(depth=3), 1 + 9 + 81, "over 3 indexes in each other"),
    ],
)
def test_a_walk_has_an_end_however_deep_and_wide_the_hierarchy_is(
    bounds: Bounds, asked: int, refused: str
) -> None:
    walk = Search(bounds)
    left = walk.begin([index("root")])
    count = 0
    while left:
        count += 1
        each = left.pop()
        name = each.host.removesuffix(".example.org")
        told = ServerAnswer(
            leads=tuple(index(f"{name}-{n}") for n in range(9)), passed_over=(("dns:x", "no"),)
        )
        left += walk.answered(each, told, "answered")
    assert count == asked
    visits = walk.report().visits
    assert refused in {each.why for each in visits if each.outcome == "refused"}
    assert len(visits) <= asked + bounds.servers


def test_elements_that_are_too_many_are_not_kept_and_that_is_said() -> None:
    walk = Search(Bounds(elements=2))
    first, second = walk.begin([index("a"), index("b")])
    walk.answered(first, ServerAnswer(elements=(element("a"), element("b"))), "answered")
    walk.answered(second, ServerAnswer(elements=(element("c"),), leads=(index("d"),)), "answered")
    found = walk.report()
    assert [each.site for each in found.elements] == ["a", "b"]
    assert [each.why for each in found.visits] == ["", "over 2 elements", ""]


def test_who_has_not_answered_is_late_and_who_told_of_it_is_said() -> None:
    walk = Search(Bounds())
    [top] = walk.begin([index("top")])
    [sweden, norway] = walk.answered(top, ServerAnswer(leads=(index("sweden"), index("norway"))), "answered")
    walk.failed(norway, "failed", "404")
    [said, late, failed] = walk.report().visits
    assert (said.by, late.by, late.url, late.outcome) == ("", top.url, sweden.url, "late")
    assert (failed.outcome, failed.why) == ("failed", "404")
    assert len(walk.report().unheard) == 2


class Pages(Sequence[Address]):
    """The leads of a page of a maze, which counts how many of them are looked at."""

    def __init__(self, page: int) -> None:
        self._page = page
        self.looked_at = 0

    def __len__(self) -> int:
        return 10_000

    def __getitem__(self, number: Any) -> Any:
        if number >= len(self):
            raise IndexError
        self.looked_at += 1
        return index(f"p{self._page}n{number}")


def test_a_full_walk_looks_at_no_more_leads() -> None:
    walk = Search(Bounds(servers=50, depth=100))
    first, *others = [Pages(page) for page in range(20)]
    asked = walk.begin([index("root")])
    asked += walk.answered(asked[0], ServerAnswer(leads=first), "answered")  # type: ignore[arg-type] # as a tuple is
    assert len(asked) == 50
    for server, page in zip(asked[1:], others, strict=False):
        assert walk.answered(server, ServerAnswer(leads=page), "answered") == []  # type: ignore[arg-type] # as above
    assert sum(each.looked_at for each in (first, *others)) < 200
