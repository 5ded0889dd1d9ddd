"""What new queues and ads make a new index look at anew: exactly what may be another than it was."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.matching.strategies import asks, new_index, offers
from tests.unit.matching.test_ads import canonical, fitting, surveyed
from wms.classad import match
from wms.classad.expression import Expression
from wms.matching import conjuncts
from wms.matching.ads import advertised
from wms.matching.clauses import fits
from wms.provisioning.known_elements import KnownElement
from wms.queue_index import job_expressions
from wms.queue_index.significant_attributes import SignificantAttributes
from wms.site import AdvertisedElement, Resource, with_ad
from wms.why.survey import Survey

NAMES = ["a", "b", "missing", "freedisk", "maxram", "open"]
REQUIREMENTS = [
    "other.a > 1", "other.b == 1 && other.a > 0", "other.missing =?= undefined", "other.missing > 0 || other.b == 1",
    "other.FreeDisk > 5", "other.MaxRAM >= 1000 && other.a > 0", "other.open", "other.nobody > 1", "my.own > other.b",
    "other.a", 'other.Site == "A" && other.a =!= undefined', "other.unknown =?= undefined && other.b == 1",
]  # fmt: skip
SITES = ["", "", "other.own > 1", "my.a > 1", "my.b == 1 && other.own =!= undefined", "my.missing > 0"]
RANKS = ["", "", "other.own", "my.b * other.own"]

_queues = st.builds(
    lambda wanted, own: asks(
        requirements=canonical(wanted), attributes=f"[own = {own}]" if own is not None else ""
    ),
    st.sampled_from(REQUIREMENTS),
    st.sampled_from([None, 1, 2]),
)
_ads = st.builds(
    lambda said, looks_back, requirements, rank: advertised(
        said, {"open": looks_back} if looks_back else {}, requirements, rank
    ),
    st.dictionaries(st.sampled_from(["a", "b", "missing", "freedisk"]), st.integers(0, 2), max_size=3),
    st.sampled_from(["", "other.own > 1", "my.a > 1", "my.missing > 0 && other.own > 0"]),
    st.sampled_from(SITES),
    st.sampled_from(RANKS),
)
_nodes = st.dictionaries(
    st.sampled_from(["a", "b", "missing", "freedisk"]), st.integers(0, 2), max_size=2
).map(lambda said: tuple(sorted(said.items())))
_forwards = st.sets(st.sampled_from(["a", "b", "missing"]), max_size=2).map(lambda said: tuple(sorted(said)))

_came = st.one_of(
    st.tuples(st.just("queue"), _queues),
    st.tuples(st.just("ad"), st.tuples(st.sampled_from("cd"), st.one_of(st.just(""), _ads))),
    st.tuples(st.just("pilot"), st.tuples(st.sampled_from("cd"), _nodes)),
)


@pytest.fixture(params=[32, 1], ids=["taken apart", "kept whole"])
def most_terms(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """So many conjuncts are told apart: what holds for short requirements holds for long ones."""
    monkeypatch.setattr(conjuncts, "MOST_TERMS", request.param)
    conjuncts._parsed.clear()
    yield request.param
    conjuncts._parsed.clear()


@settings(max_examples=60, deadline=None)
@given(came=st.lists(_came, min_size=2, max_size=12))
def test_an_index_that_grew_gives_what_one_made_afresh_gives_in_any_order(came: Any) -> None:
    follow_both(came)


@settings(max_examples=25, deadline=None)
@given(came=st.lists(_came, min_size=2, max_size=10))
def _follow(came: Any) -> None:
    follow_both(came)


def test_requirements_that_are_kept_whole_mean_the_same(most_terms: int) -> None:
    _follow()


def follow_both(came: Any) -> None:
    grown = new_index()
    queues: list[Any] = []
    ads: dict[str, str] = {}
    pilots = {("c", ()): None, ("d", ()): None}
    for what, each in came:
        if what == "queue" and each not in queues:
            grown.add_queue(len(queues), each)
            queues.append(each)
        elif what == "ad":
            grown.advertise("A", *each)
            ads[each[0]] = each[1]
        elif what == "pilot":
            pilots[each] = None
        resources = [
            offers(site="A", grid_ce=ce, memory_mb=2_000, node=node, cpu_time=10**6) for ce, node in pilots
        ]
        fresh = made_afresh(queues, ads)
        for resource in resources:
            found = fitting(grown, resource)
            assert found == fitting(fresh, resource), (what, each)
            seen = with_ad(resource, ads.get(resource.grid_ce, ""))
            assert found == {n for n, wanted in enumerate(queues) if fits(wanted, seen) is None}


def made_afresh(queues: list[Any], ads: dict[str, str]) -> Any:
    index = new_index()
    for number, each in enumerate(queues):
        index.add_queue(number, each)
    for ce, text in ads.items():
        index.advertise("A", ce, text)
    return index


@settings(max_examples=50, deadline=None)
@given(
    came=st.lists(
        st.one_of(
            st.tuples(st.just("queue"), _queues), st.tuples(st.just("element"), st.tuples(_ads, _forwards))
        ),
        min_size=2,
        max_size=10,
    )
)
def test_a_survey_that_grew_says_what_one_made_afresh_says_whatever_sites_forward(came: Any) -> None:
    grown, queues = Survey(), []
    elements: list[Resource] = []
    for what, each in came:
        if what == "queue":
            grown.append(each)
            queues.append(each)
        else:
            elements.append(with_ad(offers(site="A", grid_ce="c", memory_mb=2_000, cpu_time=10**6), *each))
        for resource in elements if queues else []:
            assert reached(grown, resource, len(queues)) == surveyed(queues, resource)


def reached(survey: Survey, resource: Any, count: int) -> list[bool]:
    element = AdvertisedElement(
        site="A",
        ce="c",
        setup="s",
        slots=1,
        max_cpu_time=10**6,
        memory_mb=resource.memory_mb,
        ad=resource.ad,
        forwards=resource.forwards or (),
    )
    ones = np.ones(count)
    found = survey.standings(ones.astype(np.int64), ones, [KnownElement(element, fresh=True)], {}, {})
    return [each.fitting == 1 for each in found]


@settings(max_examples=60, deadline=None)
@given(
    came=st.lists(
        st.one_of(
            st.tuples(st.just("look"), st.frozensets(st.sampled_from([*NAMES, "nobody"]), max_size=2)),
            st.tuples(st.just("see"), st.tuples(_ads, st.one_of(st.none(), _forwards), _nodes)),
        ),
        min_size=2,
        max_size=14,
    )
)
def test_faces_show_what_is_looked_at_whatever_was_looked_at_or_present_first(came: Any) -> None:
    grown, looked, seen = SignificantAttributes(), [], []
    for what, each in came:
        if what == "look":
            looked.append(each)
            grown.look(each)
        else:
            text, forwards, node = each
            seen.append(with_ad(offers(site="A", grid_ce="c", node=node), text, forwards))
        fresh = SignificantAttributes()
        for names in looked:
            fresh.look(names)
        names = frozenset[str]().union(*looked)
        numbers: dict[int, Any] = {}
        for resource in seen:
            ad_class, wanted = grown.of(resource), fresh.of(resource)
            assert shown(ad_class, names) == shown(wanted, names)
            if ad_class is not None:
                assert numbers.setdefault(ad_class.number, shown(ad_class, names)) == shown(ad_class, names)


def shown(ad_class: Any, names: frozenset[str]) -> Any:
    if ad_class is None:
        return None
    left = ad_class.open_requirements
    return (
        ad_class.ad.view(names),
        ad_class.requirements and ad_class.requirements.text,
        ad_class.rank and ad_class.rank.text,
        ad_class.sketch and (ad_class.sketch.ad.view(names), ad_class.sketch.free & names),
        left and left.text,
        ad_class.names & names,
    )


def test_queues_that_look_at_what_no_resource_has_leave_all_faces_as_they_are() -> None:
    ad_classes = SignificantAttributes()
    ad_classes.look(frozenset({"a"}))
    resource = with_ad(offers(site="A", grid_ce="c"), advertised({"a": 1, "b": 2}, {}, "", ""))
    ad_class, version = ad_classes.of(resource), ad_classes.version
    for n in range(1_000):
        ad_classes.look(frozenset({f"nobody{n}", "a"}))
    assert ad_classes.of(resource) is ad_class
    assert ad_classes.version == version
    ad_classes.look(frozenset({"b"}))
    assert ad_classes.version != version
    assert ad_classes.of(resource) is not ad_class


def test_what_no_resource_has_is_evaluated_once_however_many_resources_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judged: list[str] = []

    def satisfied(expression: Expression, *more: Any) -> bool:
        if expression.text != "true":
            judged.append(expression.text)
        return judge(expression, *more)

    judge = match.satisfied
    monkeypatch.setattr(conjuncts, "satisfied", satisfied)
    monkeypatch.setattr(job_expressions, "satisfied", satisfied)
    index = new_index()
    index.add_queue(0, asks(requirements="other.a >= 0"))
    for n in range(1, 21):
        index.add_queue(n, asks(requirements=f"other.nobody{n} > 1"))
    for n in range(30):
        index.advertise("A", f"c{n}", advertised({"a": n}, {}, "", ""))
        assert fitting(index, offers(site="A", grid_ce=f"c{n}")) == {0}
    assert sorted(judged) == sorted(["other.a >= 0"] * 31 + [f"other.nobody{n} > 1" for n in range(1, 21)])


def test_names_that_were_present_are_bounded_and_what_they_tell_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("wms.queue_index.significant_attributes._KEPT_NAMES", 50)
    index = new_index()
    index.add_queue(0, asks(requirements="other.a == 1 && other.x7 =?= undefined"))
    for n in range(200):
        told = advertised({"a": n % 2, f"x{n}": 1, f"y{n}": 1}, {}, "", "")
        index.advertise("A", f"c{n % 9}", told)
        for ce in range(min(n, 9)):
            last = n - (n - ce) % 9
            wanted = {0} if last % 2 == 1 and last != 7 else set()
            assert fitting(index, offers(site="A", grid_ce=f"c{ce}")) == wanted, (n, ce)
    assert len(index._ad_classes._present) <= 60


def test_what_is_parsed_is_kept_when_an_index_numbers_its_queues_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("wms.queue_index.index._FEW_SLOTS", 8)
    monkeypatch.setattr("wms.queue_index.index._SLOTS_A_QUEUE", 2)
    index = new_index()
    for n in range(20):
        index.add_queue(n, asks(requirements=long(n)))
    monkeypatch.setattr(Expression, "parse", not_again)
    for n in range(14):
        index.remove_queue(n)
    assert len(index._queues) < 20, "slots were numbered anew"
    index.add(19, 1.0, [1])
    index.add(18, 1.0, [2])
    resource = with_ad(offers(site="A"), advertised({"n": 19}, {}, "", ""))
    assert [pick.job_id for pick in index.select(resource, 5, np.random.default_rng(1))] == [1]


def not_again(text: str, place: str = "") -> Expression:
    if len(text) > SHORT:
        raise AssertionError("parsed again")
    return PARSE(text, place)


PARSE = Expression.parse
SHORT = 500


def long(n: int) -> str:
    terms = [f"other.n == {n}", *(f"other.x{n}y{each} =?= undefined" for each in range(40))]
    return canonical(" && ".join(terms))
