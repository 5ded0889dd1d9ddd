"""The standing of all queues at once is what is added up for each alone, however it came about."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.matching.strategies import asks, requirements
from tests.unit.why.elements import element, elements
from wms.ids import CeId
from wms.matching.clauses import Mismatch
from wms.matching.closed_pairs import Pair, pairs
from wms.matching.grouping import Requirements
from wms.provisioning.known_elements import KnownElement, PilotCounts
from wms.site import Resource
from wms.why.notices import why_shut
from wms.why.survey import Survey
from wms.why.verdict import AVOIDED, ElementSupply, verdicts
from wms.why.wait_reason_text import Judgement, QueueOutlook, judge, standing

Closed = Mapping[CeId, set[Pair]]


def known() -> st.SearchStrategy[list[KnownElement]]:
    one = st.builds(KnownElement, elements(), st.booleans())
    return st.lists(one, max_size=6, unique_by=lambda each: (each.element.site, each.element.ce))


def crews() -> st.SearchStrategy[dict[tuple[str, str, str], PilotCounts]]:
    place = st.tuples(
        st.sampled_from(["A", "B"]), st.sampled_from(["A", "B", "C"]), st.sampled_from(["v", "w"])
    )
    number = st.integers(0, 3)
    return st.dictionaries(place, st.builds(PilotCounts, number, number, number, number), max_size=6)


def closed() -> st.SearchStrategy[dict[CeId, set[Pair]]]:
    place = st.builds(CeId, st.sampled_from(["A", "B"]), st.sampled_from(["", "A", "B"]))
    pair: st.SearchStrategy[Any] = st.sampled_from(
        [("owner", "o"), ("owner_group", "g"), ("any", ""), ("tag", "gpu"), ("job_type", "A")]
    )
    return st.dictionaries(place, st.sets(pair, min_size=1, max_size=2), max_size=2)


def shut() -> st.SearchStrategy[dict[CeId, str]]:
    place = st.builds(CeId, st.sampled_from(["A", "B"]), st.sampled_from(["", "A", "B"]))
    return st.dictionaries(place, st.just("it eats jobs"), max_size=2)


def avoided(places: Mapping[CeId, str]) -> Callable[[Requirements, Resource], Mismatch | None]:
    def negative(_: Requirements, at: Resource) -> Mismatch | None:
        why = why_shut(places, at.site, at.grid_ce)
        return Mismatch(AVOIDED, why) if why else None

    return negative


def kept_out(by: Closed) -> Callable[[Requirements, Resource], Mismatch | None]:
    def negative(wanted: Requirements, at: Resource) -> Mismatch | None:
        here = by.get(CeId(at.site, ""), set()) | by.get(CeId(at.site, at.grid_ce), set())
        return Mismatch("limit", "reached") if here & pairs(wanted) else None

    return negative


def alone(
    wanted: Requirements,
    there: list[KnownElement],
    of: dict[tuple[str, str, str], PilotCounts],
    by: Closed,
    closed_to_work: dict[CeId, str],
) -> QueueOutlook:
    places = []
    for each in there:
        crew = of.get((each.element.site, each.element.ce, wanted.vo), PilotCounts())
        places.append(
            ElementSupply(
                element=each.element,
                fresh=each.fresh,
                running=crew.running,
                coming=crew.coming,
                slots=crew.slots,
                free_slots=crew.free_slots,
            )
        )
    return standing(wanted, verdicts(wanted, places, [avoided(closed_to_work), kept_out(by)]))


@settings(max_examples=100, deadline=None)
@given(st.lists(requirements(), min_size=1, max_size=6), st.data())
def test_all_at_once_as_each_alone(queues: list[Requirements], data: st.DataObject) -> None:
    """Over several rounds with other elements, pilots and limits, and queues that come in between."""
    survey = Survey()
    for count in (len(queues) // 2, len(queues)):
        while len(survey.requirements) < count:
            survey.append(queues[len(survey.requirements)])
        there, of, by, away = data.draw(known()), data.draw(crews()), data.draw(closed()), data.draw(shut())
        found = survey.standings(np.ones(count, dtype=np.int64), np.ones(count), there, of, by, away)
        for wanted, said in zip(queues, found, strict=False):
            expected = alone(wanted, there, of, by, away)
            assert said._replace(chance=1.0, limit="") == expected._replace(limit="")
            assert bool(said.limit) == bool(expected.limit)
            assert judge(said).code == judge(expected).code


def chances(free: int, *queues: tuple[Requirements, int, float]) -> list[float]:
    survey = Survey()
    for wanted, _, _ in queues:
        survey.append(wanted)
    found = survey.standings(
        np.array([jobs for _, jobs, _ in queues]),
        np.array([weight for _, _, weight in queues]),
        [KnownElement(element(), fresh=True)],
        {("A", "ce", "v"): PilotCounts(running=1, slots=10, free_slots=free)},
        {},
    )
    return [each.chance for each in found]


LONG, SHORT = asks(cpu_segment=1_000), asks(cpu_segment=500)


@pytest.mark.parametrize(
    ("free", "queues", "expected"),
    [
        (4, [(LONG, 100, 3.0), (LONG, 100, 1.0)], [0.75, 0.25]),
        (4, [(LONG, 100, 1.0), (SHORT, 100, 1.0)], [1.0, 0.0]),
        (4, [(LONG, 1, 1.0), (SHORT, 100, 1.0)], [0.25, 0.75]),
        (4, [(LONG, 1, 9.0), (LONG, 2, 1.0)], [0.25, 0.5]),
        (4, [(LONG, 0, 0.0), (SHORT, 4, 1.0)], [0.0, 1.0]),
    ],
)
def test_free_slots_go_to_the_highest_segment_and_there_by_weight(
    free: int, queues: list[tuple[Requirements, int, float]], expected: list[float]
) -> None:
    assert chances(free, *queues) == pytest.approx(expected)


def test_a_limit_is_named_with_what_it_keeps_out() -> None:
    survey = Survey()
    survey.append(asks())
    (said,) = survey.standings(
        np.ones(1, dtype=np.int64),
        np.ones(1),
        [KnownElement(element(), fresh=True)],
        {},
        {CeId("A", ""): {("owner", "o")}},
    )
    assert judge(said).code == "HELD_BY_LIMIT"
    assert "owner 'o'" in said.limit


def test_what_a_limit_holds_is_told_from_what_only_avoided_elements_could_run() -> None:
    survey = Survey()
    survey.append(asks())
    here = [KnownElement(element(), fresh=True), KnownElement(element("other"), fresh=True)]
    full = {CeId("A", "ce"): {("owner", "o")}}

    def look(closed: Any, away: dict[CeId, str]) -> Judgement:
        (said,) = survey.standings(np.ones(1, dtype=np.int64), np.ones(1), here, {}, closed, away)
        return judge(said)

    mixed = look(full, {CeId("A", "other"): "A/other: avoid: banned"})
    assert mixed.code == "HELD_BY_LIMIT"
    assert "but for 1 that are avoided: no more jobs of owner" in mixed.text
    whole = look(full, {CeId("A", ""): "A: avoid: banned"})
    assert whole == (
        "ALL_AVOIDED",
        "2 computing elements could run it, and each is avoided now: A: avoid: banned",
    )
    assert look({}, {CeId("A", "other"): "A/other: avoid: banned"}).code == "NO_PILOT"
