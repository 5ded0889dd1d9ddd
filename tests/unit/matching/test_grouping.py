"""Grouping: what makes requirements equal, CPU segments, processor tags."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.matching.strategies import asks, offers, requirements
from wms.matching.ads import JOB, advertised, job_attributes, job_values
from wms.matching.clauses import fits
from wms.matching.grouping import (
    DEFAULT_SEGMENTS,
    NAMED_SETS,
    Requirements,
    checked_segments,
    key,
    processor_tags,
    processors_needed,
    segment,
    without_case,
)
from wms.matching.shares import share_class
from wms.site import offered_tags, with_ad


def test_key_takes_sets_as_sets():
    assert key(asks(sites=("B", "A", "A"), tags=("x", "y"))) == key(
        asks(sites=("A", "B"), tags=("y", "x", "x"))
    )


def test_key_is_fixed_for_ever():
    assert key(asks(sites=("A",))).hex() == "58dbd4881ce0390313a4b9d5900335e8acd6819af3a614edad6bd51957690667"


def test_names_that_differ_in_case_alone_are_one_queue():
    one = asks(sites=("LCG.CERN.ch",), banned_sites=("B", "b"), platforms=("x86_64",), grid_ces=("MC",))
    other = asks(sites=("lcg.cern.ch",), banned_sites=("b",), platforms=("X86_64",), grid_ces=("mc",))
    assert key(one) == key(other)
    assert share_class(one) == share_class(other)
    assert key(asks(owner="Alice")) != key(asks(owner="alice"))
    assert key(asks(owner_group="G")) != key(asks(owner_group="g"))


@pytest.mark.parametrize("field", ["job_types", "tags"])
def test_jobs_that_an_expression_of_a_site_can_tell_apart_are_two_queues(field: str):
    one, other = asks(**{field: ("Bad",)}), asks(**{field: ("bad",)})
    name = {"job_types": "JobType", "tags": "Tags[0]"}[field]
    ad = advertised({}, {}, f'other.{name} =!= "Bad"', "")
    site = with_ad(offers(tags=("bad",)), ad)
    assert fits(one, site) is not None
    assert fits(other, site) is None
    assert key(one) != key(other)


@given(requirements(), requirements())
def test_jobs_of_one_queue_are_one_to_every_expression(one, other):
    if key(one) == key(other):
        assert job_attributes(without_case(one)) == job_attributes(without_case(other))
        assert job_values(job_attributes(one), frozenset(JOB)) == job_values(
            job_attributes(other), frozenset(JOB)
        )


def test_what_a_token_says_of_its_owner_is_of_the_key():
    assert key(asks(certificate_subject="/CN=a")) != key(asks()) != key(asks(fqans=("/v",)))
    assert key(asks(fqans=("/v/Role=a", "/v"))) != key(asks(fqans=("/v", "/v/Role=a")))


def test_key_tells_apart():
    assert key(asks(sites=("A",))) != key(asks(banned_sites=("A",)))
    assert key(asks(tags=("a", "b"))) != key(asks(tags=("a,b",)))
    assert key(asks(owner="a", owner_group="b")) != key(asks(owner="b", owner_group="a"))


@given(requirements(), requirements())
def test_key_is_equal_exactly_for_equal_requirements(one, other):
    assert (key(one) == key(other)) == (without_case(one) == without_case(other))


@given(requirements(), st.randoms())
def test_order_and_duplicates_do_not_matter(one, rng):
    fields = msgspec.structs.asdict(one)
    for name, value in fields.items():
        if name in NAMED_SETS:
            shuffled = list(value * 2)
            rng.shuffle(shuffled)
            fields[name] = tuple(shuffled)
    other = Requirements(**fields)
    assert other == one
    assert hash(other) == hash(one)
    assert key(other) == key(one)


def test_requirements_survive_the_wire_in_any_order():
    raw = b'{"owner":"o","owner_group":"g","vo":"v","setup":"s","cpu_segment":500,"sites":["B","A","B"]}'
    assert msgspec.json.decode(raw, type=Requirements) == asks(sites=("A", "B"))


def test_a_list_with_any_names_nothing():
    assert asks(sites=("A", "ANY"), platforms=("any",)) == asks()
    assert asks(banned_sites=("any",)) != asks()


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, 500),
        (1, 500),
        (500, 500),
        (501, 5_000),
        (50_000, 50_000),
        (300_000, 300_000),
        (300_001, 302_400),
        (864_000, 864_000),
    ],
)
def test_cpu_time_is_raised_to_its_segment(seconds, expected):
    assert segment(seconds) == expected
    assert segment(86_400, (360, 86_400, 172_800)) == 86_400
    assert segment(86_401, (360, 86_400, 172_800)) == 172_800


@pytest.mark.parametrize("bad", [(), (0, 5), (5, 5), (5, 4)])
def test_segments_must_increase(bad):
    with pytest.raises(ValueError, match="increase"):
        checked_segments(bad)
    assert checked_segments(list(DEFAULT_SEGMENTS)) == DEFAULT_SEGMENTS


def test_processor_tags():
    assert processor_tags(1) == ()
    assert processor_tags(4) == ("4Processors", "MultiProcessor")
    assert offered_tags((), 1).tags == {"1processors"}
    assert offered_tags((), 3).tags == {"1processors", "2processors", "3processors", "multiprocessor"}
    assert processors_needed(asks(tags=processor_tags(4))) == 4
    assert processors_needed(asks(tags=("gpu",))) == 1
    for bad in (0, 1025):
        with pytest.raises(ValueError, match="processors"):
            processor_tags(bad)
