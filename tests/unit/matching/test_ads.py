"""Matching on both sides: the index, the clauses and the survey against the library's own evaluation of two ads."""

import gc
import json
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.unit.matching import reference
from tests.unit.matching.strategies import asks, new_index, offers
from wms.classad.expression import Expression
from wms.classad.limits import AD_NODES
from wms.classad.match import numbers, satisfied, satisfied_by
from wms.errors import Rejected
from wms.matching.ads import advertised, site_ad
from wms.matching.clauses import fits
from wms.provisioning.demand import QueuedWork, gather
from wms.provisioning.known_elements import KnownElement
from wms.queue_index import job_expressions, site_expressions
from wms.site import AdvertisedElement, as_it_is, with_ad
from wms.why.survey import Survey

PLACE = ("A", "c")

JOBS = [
    "", "", "other.a > 1", 'other.b == "x" && other.a > 1', "other.missing =?= undefined", "other.a",
    'other.open && other.b == "x"', "other.open || other.a == 0", "my.own > other.a", 'my.Owner == "o" && other.a',
    'other.Site == "A"', "other.MaxRAM >= 1000 && other.open", "true", "other.a > 1 || other.c", "false",
]  # fmt: skip
SITES = [
    "", "", 'other.Owner == "o"', "other.MinRAM > 500", "other.own > 1", "my.a > 1", 'member("gpu", other.Tags)',
    "other.ImageSize =?= undefined || my.MaxRAM > 1000", "other.own", "true", "other.CPUTime > 1000 && my.c",
]  # fmt: skip
RANKS = ["", "", "other.own", "-other.CPUTime", 'other.Owner == "o"', "other.missing", "my.a"]
OPEN = ["other.own > 1", 'other.Owner == "p"', "my.a > 1 && other.CPUTime > 1000"]


def canonical(text: str) -> str:
    return Expression.parse(text).text if text else ""


def site(**said: Any) -> dict[str, Any]:
    return {"attributes": {}, "requirements": "", "rank": "", **said}


def text_of(said: dict[str, Any]) -> str:
    return advertised({}, said["attributes"], said["requirements"], said["rank"])


queues = st.builds(
    lambda wanted, own, **fields: asks(
        requirements=canonical(wanted), attributes=f"[own = {own}]" if own is not None else "", **fields
    ),
    st.sampled_from(JOBS),
    st.sampled_from([None, None, 1, 2]),
    owner=st.sampled_from(["o", "p"]),
    cpu_segment=st.sampled_from([500, 5_000]),
    min_ram_mb=st.sampled_from([0, 0, 1_000]),
    tags=st.sampled_from([(), ("gpu",)]),
)
sites = st.builds(
    lambda a, b, c, looks_back, requirements, rank: site(
        attributes={"a": a, "b": b, "c": c, "open": looks_back}, requirements=requirements, rank=rank
    ),
    st.sampled_from(["0", "1", "2", "2.5"]),
    st.sampled_from(['"x"', '"y"']),
    st.sampled_from(["true", "false", "1", '"t"']),
    st.sampled_from(OPEN),
    st.sampled_from(SITES),
    st.sampled_from(RANKS),
)


@settings(max_examples=60, deadline=None)
@given(
    asked=st.lists(queues, min_size=1, max_size=8),
    later=st.lists(queues, max_size=3),
    said=st.lists(sites, min_size=1, max_size=4),
    memory=st.sampled_from([0, 1_500]),
)
def test_what_fits_is_what_the_library_says_whatever_ads_come_and_go(
    asked: Any, later: Any, said: Any, memory: int
) -> None:
    index = new_index()
    resource = offers(site="A", grid_ce="c", memory_mb=memory, tags=("gpu",), cpu_time=10**6)
    all_asked = list(dict.fromkeys([*asked, *later]))
    for number, each in enumerate(all_asked[: len(dict.fromkeys(asked))]):
        index.add_queue(number, each)
    for n, there in enumerate([*said, site()]):
        if n == 1:
            for number, each in enumerate(all_asked):
                index.add_queue(number, each)
        index.advertise(*PLACE, text_of(there))
        known = list(index.queue_ids())
        wanted = {number for number in known if reference.fits(all_asked[number], resource, {PLACE: there})}
        assert fitting(index, resource) == wanted
        seen = with_ad(resource, text_of(there))
        assert {number for number in known if fits(all_asked[number], seen) is None} == wanted
        assert surveyed([all_asked[number] for number in known], seen) == [n in wanted for n in known]


def fitting(index: Any, resource: Any) -> set[int]:
    """The queues that jobs are drawn from, each with one job, until there are none."""
    for number in index.queue_ids():
        index.add(number, 1.0, [number + 1])
    picks = index.select(resource, 1_000, np.random.default_rng(1))
    found = {pick.tq_id for pick in picks}
    left = {number for number in index.queue_ids() if index.count(number)}
    told = index.why_nothing(resource)
    assert sum(each.queues for each in told.failed) == len(left)
    index.discard(*(number + 1 for number in left))
    return found


def surveyed(asked: list[Any], seen: Any) -> list[bool]:
    survey = Survey()
    for each in asked:
        survey.append(each)
    element = AdvertisedElement(
        site="A",
        ce="c",
        setup="s",
        slots=1,
        max_cpu_time=10**6,
        memory_mb=seen.memory_mb,
        tags=seen.tags,
        ad=seen.ad,
        forwards=seen.forwards or (),
    )
    ones = np.ones(len(asked))
    standings = survey.standings(ones.astype(np.int64), ones, [KnownElement(element, fresh=True)], {}, {})
    return [each.fitting == 1 for each in standings]


ASKED = {
    1: asks(attributes="[own = 3]"),
    2: asks(owner="p", attributes="[own = 3]"),
    3: asks(owner="q", attributes="[own = 3]", job_types=("t",)),
    4: asks(attributes="[own = 9]", min_ram_mb=10),
    5: asks(attributes="[own = 1]"),
    6: asks(),
}


def ranked(rank: str) -> tuple[Any, dict[int, reference.Queue], dict[Any, Any]]:
    index = new_index()
    there = site(rank=rank)
    index.advertise(*PLACE, text_of(there))
    found = {}
    for number, wanted in ASKED.items():
        index.add_queue(number, wanted)
        jobs = {100 * number + n: 1.0 for n in range(number)}
        index.add(number, 1.0, jobs)
        found[number] = reference.Queue(wanted, jobs)
    return index, found, {PLACE: there}


@pytest.mark.parametrize("rank", ["other.own", "-other.own", "other.missing", "other.own > 2"])
def test_the_draw_is_among_those_that_the_resource_likes_most(rank: str) -> None:
    index, found, ads = ranked(rank)
    resource = offers(site="A", grid_ce="c", memory_mb=100, cpu_time=10**6)
    rng = np.random.default_rng(2)
    while heavy := reference.candidates(found, resource, {}, ads):
        [pick] = index.select(resource, 1, rng)
        assert pick.tq_id in heavy
        del found[pick.tq_id].jobs[pick.job_id]
    assert not index.select(resource, 1, rng)


def test_among_equals_in_rank_the_draw_is_the_reference_s() -> None:
    index, found, ads = ranked("other.own == 3")
    resource = offers(site="A", grid_ce="c", memory_mb=100, cpu_time=10**6)
    heavy = reference.candidates(found, resource, {}, ads)
    assert set(heavy) == {1, 2, 3}
    rng, literal_rng = np.random.default_rng(3), random.Random(4)
    ours = Counter[int]()
    for _ in range(3_000):
        picks = index.select(resource, 1, rng)
        ours[picks[0].tq_id] += 1
        index.restore(picks)
    literal = Counter(reference.draw(found, heavy, literal_rng)[1] for _ in range(3_000))
    assert reference.homogeneity([ours[n] for n in (1, 2, 3)], [literal[n] for n in (1, 2, 3)]) > 0.001


def test_what_is_closed_is_passed_over_by_rank_as_well() -> None:
    index, _, _ = ranked("other.own")
    resource = offers(site="A", grid_ce="c", memory_mb=100, cpu_time=10**6)
    index.close("A", [("owner", "o")])
    picks = index.select(resource, 10, np.random.default_rng(5))
    assert {pick.tq_id for pick in picks} == {2, 3}


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the index evaluates: expressions by their texts and what they are, each with what it sees."""
    seen: list[tuple[Any, ...]] = []

    def one(expression: Any, ad: Any, *own: Any) -> bool:
        seen.append((expression.text, "wish", ad.view(expression.other)))
        return satisfied(expression, ad, *own)

    def counting(judge: Any) -> Any:
        def several(expression: Any, ads: Any, *own: Any) -> Any:
            seen.extend((expression.text, judge, ad.view(expression.other)) for ad in ads)
            return judge(expression, ads, *own)

        return several

    monkeypatch.setattr(job_expressions, "satisfied", one)
    monkeypatch.setattr(site_expressions, "satisfied_by", counting(satisfied_by))
    monkeypatch.setattr(site_expressions, "numbers", counting(numbers))
    return seen


def test_an_expression_is_evaluated_once_for_what_it_sees(pairs: list[tuple[Any, ...]]) -> None:
    index = new_index()
    for n in range(20):
        index.add_queue(n, asks(owner=f"o{n}", requirements="other.a > 1 && other.b > 1"))
        index.add(n, 1.0, [n + 1])
    rng = np.random.default_rng(1)
    for n in range(50):
        index.advertise("A", f"c{n % 5}", advertised({"a": 2, "b": n // 25, "elsewhere": n}, {}, "", ""))
        index.select(offers(site="A", grid_ce=f"c{n % 5}"), 1, rng)
    assert Counter(text for text, *_ in pairs) == {"other.a > 1": 1, "other.b > 1": 2}


def test_a_pair_is_evaluated_once_whatever_queues_and_ads_come(pairs: list[tuple[Any, ...]]) -> None:
    index = new_index()
    rng = np.random.default_rng(1)
    said = [advertised({"a": n % 3, "b": n}, {}, SITES[2 + n % 8], RANKS[2 + n % 4]) for n in range(24)]
    for n in range(60):
        # The same requirements under other names, and now and then an attribute that nobody looked at before.
        attributes = f"[own = {n % 3}]" if n % 4 else ""
        wanted = canonical(f"{JOBS[2 + n % 8]} || other.new{n // 20} == 1")
        index.add_queue(
            n,
            asks(owner="op"[n % 2], attributes=attributes, requirements=wanted, min_ram_mb=n % 2 and n),
        )
        index.add(n, 1.0, [2 * n, 2 * n + 1])
        for ce in range(3):
            index.advertise("A", f"c{ce}", said[(n + ce) % len(said)])
            index.select(offers(site="A", grid_ce=f"c{ce}", memory_mb=10**6, cpu_time=10**6), 1, rng)
    assert pairs
    assert [pair for pair, times in Counter(pairs).items() if times > 1] == []
    assert index.evaluated == len(pairs)


def test_ads_outlive_the_queues_that_leave() -> None:
    index = new_index()
    index.advertise("A", "c", advertised({"a": 2}, {}, "", ""))
    index.add_queue(1, asks(requirements="other.a == 2"))
    index.add(1, 1.0, [1])
    for n in range(2, 3_000):
        index.add_queue(n, asks(owner=f"o{n}"))
        index.remove_queue(n)
    assert len(index._queues) < 3_000, "slots were numbered anew"
    (pick,) = index.select(offers(site="A", grid_ce="c"), 1, np.random.default_rng(1))
    assert pick.job_id == 1


# --- words, and where pilots go --------------------------------------------------------------------


def test_a_mismatch_names_the_conjunct_and_what_it_saw() -> None:
    text = advertised({"a": 1}, {}, 'other.Owner == "p"', "")
    failed = fits(asks(requirements='other.a > 1 && other.Site == "A"'), with_ad(offers(site="A"), text))
    assert failed is not None
    assert (failed.clause, failed.detail) == ("requirements", "other.a > 1 is false where other.a = 1")
    failed = fits(asks(), with_ad(offers(), text))
    assert failed is not None
    assert failed.detail == 'other.owner == "p" is false where other.owner = "o"'


def test_pilots_are_planned_by_both_sides_and_by_whose_work_it_is_where_that_matters() -> None:
    def element(ce: str, requirements: str) -> AdvertisedElement:
        text = advertised({"a": 1}, {}, requirements, "")
        return AdvertisedElement(site="A", ce=ce, setup="s", slots=1, max_cpu_time=10**6, ad=text)

    work = [QueuedWork(asks(owner=owner), 1) for owner in ("o", "p")]
    work += [QueuedWork(asks(owner=owner, requirements="other.a == 2"), 1) for owner in ("o", "p")]
    demand = gather(work, [element("c", ""), element("d", 'other.Owner == "o"')])
    assert {(kind.requirements.owner, kind.elements) for kind in demand.kinds} == {("o", (0, 1)), ("p", (0,))}
    assert sum(each.jobs for each in demand.unservable) == 2
    assert gather(work[:2], [element("c", "")]).kinds[0].jobs == 2


def test_work_is_one_kind_where_nobody_looks_at_what_its_jobs_say_of_themselves() -> None:
    def element(ce: str, requirements: str, **attributes: str) -> AdvertisedElement:
        expressions = {name: text for name, text in attributes.items() if text}
        text = advertised({"a": 1}, expressions, requirements, "other.Seed")
        return AdvertisedElement(site="A", ce=ce, setup="s", slots=1, max_cpu_time=10**6, ad=text)

    def kinds(wanted: str, *elements: AdvertisedElement) -> list[tuple[str, int]]:
        work = [
            QueuedWork(
                asks(requirements=canonical(wanted), attributes=f"[project = {n // 3}; seed = {n}]"), 1
            )
            for n in range(6)
        ]
        return sorted((kind.requirements.attributes, kind.jobs) for kind in gather(work, elements).kinds)

    by_project = [("[project = 0]", 3), ("[project = 1]", 3)]
    assert kinds("", element("c", "")) == [("", 6)]
    assert kinds("other.a == 1", element("c", "")) == [("", 6)]
    assert kinds("my.Project >= 0", element("c", "")) == by_project
    assert kinds("", element("c", ""), element("d", "other.Project == 1")) == by_project
    assert kinds("other.open", element("c", "", open="other.Project < 5")) == by_project
    assert len(kinds("my.Seed > 2", element("c", ""))) == 3


NODES = st.sampled_from(
    [(), (("a", 2),), (("a", 0), ("c", True)), (("b", "x"), ("maxram", 9_000)), (("missing", 1),)]
)


@settings(max_examples=60, deadline=None)
@given(asked=st.lists(queues, min_size=1, max_size=8, unique=True), there=sites, node=NODES)
def test_what_a_pilot_tells_of_its_node_goes_before_the_ad_of_its_element(
    asked: Any, there: Any, node: Any
) -> None:
    plain = offers(site="A", grid_ce="c", memory_mb=1_500, tags=("gpu",), cpu_time=10**6)
    resource = replace(plain, node=node)
    told = {
        name: str(value).lower() if isinstance(value, bool) else json.dumps(value) for name, value in node
    }
    told.pop("maxram", None)
    whole = {**there, "attributes": {**there["attributes"], **told}}
    index = new_index()
    index.advertise(*PLACE, text_of(there))
    for number, each in enumerate(asked):
        index.add_queue(number, each)
    wanted = {n for n, each in enumerate(asked) if reference.fits(each, plain, {PLACE: whole})}
    assert fitting(index, resource) == wanted
    seen = with_ad(resource, text_of(there))
    assert {n for n, each in enumerate(asked) if fits(each, seen) is None} == wanted


@settings(max_examples=60, deadline=None)
@given(
    asked=st.lists(queues, min_size=1, max_size=8, unique=True),
    there=sites,
    forwards=st.sets(st.sampled_from(["a", "b", "c", "missing"])),
    node=NODES,
)
@example(
    asked=[asks(owner="o", cpu_segment=500), asks(owner="o", cpu_segment=5_000)],
    there=site(
        attributes={"a": "0", "b": '"x"', "c": "false", "open": "other.own > 1"},
        requirements="other.CPUTime > 1000 && my.c",
    ),
    forwards={"a", "c"},
    node=(("a", 0), ("c", True)),
)
def test_an_element_could_do_wherever_some_host_of_it_does_and_survey_and_clauses_agree(
    asked: Any, there: Any, forwards: Any, node: Any
) -> None:
    resource = offers(site="A", grid_ce="c", memory_mb=1_500, tags=("gpu",), cpu_time=10**6)
    would_be = with_ad(resource, text_of(there), tuple(sorted(forwards)))
    could = [fits(each, would_be) is None for each in asked]
    assert surveyed(asked, would_be) == could
    host = as_it_is(would_be, tuple(each for each in node if each[0] in forwards))
    assert not any(fits(each, host) is None and not may for each, may in zip(asked, could, strict=True))
    if not forwards:
        assert could == [fits(each, host) is None for each in asked]


def test_what_a_site_requires_of_jobs_may_depend_on_the_host_that_is_asked_for() -> None:
    small, large = asks(attributes="[own = 1]"), asks(attributes="[own = 3]")
    ad = advertised({"a": 2, "b": 1}, {}, "other.own <= my.a && my.b == 1", "")
    resource = offers(site="A", grid_ce="c")
    assert [fits(each, with_ad(resource, ad)) is None for each in (small, large)] == [True, False]
    for forwards, both in (((), False), (("a",), True), (("b",), False), (("a", "b"), True)):
        would_be = with_ad(resource, ad, forwards)
        assert [fits(each, would_be) is None for each in (small, large)] == [True, both]
        assert surveyed([small, large], would_be) == [True, both]
    # Where it cannot be, what cannot is told, and not what could be.
    mismatch = fits(large, with_ad(resource, ad, ("b",)))
    assert mismatch is not None
    assert "other.own <= my.a" in mismatch.detail
    closed = advertised({"a": 2, "b": 2}, {}, "other.own <= my.a && my.b == 1", "")
    mismatch = fits(large, with_ad(resource, closed, ("a",)))
    assert mismatch is not None
    assert "other.own" not in mismatch.detail


def long_requirements(nodes: int) -> str:
    """Return the text of an expression of so many nodes, three a term and one for the chain."""
    return " || ".join(f"other.a == {n}" for n in range((nodes - 1) // 3))


def test_a_parsed_ad_is_no_work_for_the_garbage_collector() -> None:
    # What the first ad of a process alone makes is not counted.
    assert site_ad(advertised({"Tags": ["b"]}, {}, "other.a == 1", "")).demands
    gc.collect()
    before = len(gc.get_objects())
    ad = site_ad(advertised({"Tags": ["a"] * 500}, {}, long_requirements(AD_NODES - 10), ""))
    gc.collect()
    assert ad.demands
    assert len(gc.get_objects()) - before < 100


def test_an_ad_whose_expressions_would_hold_an_event_loop_is_refused() -> None:
    assert advertised({}, {}, long_requirements(AD_NODES - 10), "")
    with pytest.raises(Rejected, match="grows too large"):
        advertised({}, {}, long_requirements(AD_NODES + 10), "")
    base = {"base": long_requirements(AD_NODES // 2)}
    with pytest.raises(Rejected, match="grows too large"):
        advertised({}, base, "MY.base && true", "MY.base")
