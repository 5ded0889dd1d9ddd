"""The benchmarks' workload is the same for all, and their judge sees what is wrong."""

import msgspec
import numpy as np
import pytest

from bench.expressions import at_elements, make_elements, with_expressions
from bench.store import describe
from bench.two_ads import Judge
from bench.validity import InvalidError, Match, check, check_best, mismatch
from bench.workload import SHARING, VO, Jobs, Pilot, Queue, Shape, make_jobs, make_pilots, make_queues
from wms.classad.match import number
from wms.jobdesc.validation import validate
from wms.matching.ads import advertised, job_ad, job_attributes, resource_ad
from wms.matching.clauses import fits
from wms.matching.grouping import DEFAULT_SEGMENTS
from wms.matching.requirements import requirements_of
from wms.site import Resource, with_ad

SHAPE = Shape(queues=200, waiting=5_000)
QUEUE = Queue(owner="user00", group="lhcb_mc", cpu_time=5_000, priority=1.0, job_types=("type00",))
PILOT = Pilot(site="A", ce="ce", platform="x86_64-el9", cpu_time=5_000)


def jobs(*queues: int) -> Jobs:
    return Jobs(np.array(queues, np.int32), np.ones(len(queues), np.int16))


def test_the_same_seed_makes_the_same_workload():
    assert make_queues(SHAPE) == make_queues(SHAPE)
    assert make_pilots(SHAPE, 100) == make_pilots(SHAPE, 100)
    one, other = make_jobs(SHAPE), make_jobs(SHAPE)
    assert np.array_equal(one.queue, other.queue)
    assert np.array_equal(one.priority, other.priority)


def test_queues_differ_and_none_is_empty():
    queues, waiting = make_queues(SHAPE), make_jobs(SHAPE)
    required = {requirements_of(describe(q), q.owner, q.group, VO, DEFAULT_SEGMENTS) for q in queues}
    assert len(required) == SHAPE.queues
    assert not [problem for each in queues for problem in validate(describe(each))]
    assert len(waiting) == SHAPE.waiting
    assert np.bincount(waiting.queue, minlength=SHAPE.queues).min() > 0


@pytest.mark.parametrize(
    ("queue", "pilot"),
    [
        ({"cpu_time": 50_000}, {}),
        ({}, {"owner": "user00", "group": "lhcb_prod"}),
        ({"group": "lhcb_user"}, {"owner": "user07", "group": "lhcb_user"}),
        ({"sites": ("B",)}, {}),
        ({"banned": ("A",)}, {}),
        ({"platforms": ("aarch64-el9",)}, {}),
        ({}, {"job_types": ("type01",)}),
        ({"tags": ("GPU", "LargeMem")}, {"tags": ("GPU",)}),
    ],
)
def test_the_judge_refuses(queue, pilot):
    assert mismatch(QUEUE, PILOT) == ""
    assert mismatch(msgspec.structs.replace(QUEUE, **queue), msgspec.structs.replace(PILOT, **pilot))


def test_the_judge_agrees_with_the_matcher():
    verdicts = set()
    for pilot in make_pilots(SHAPE, 50):
        resource = described(pilot)
        for queue in make_queues(SHAPE):
            required = requirements_of(describe(queue), queue.owner, queue.group, VO, DEFAULT_SEGMENTS)
            fit = mismatch(queue, pilot) == ""
            assert fit == (fits(required, resource) is None)
            verdicts.add(fit)
    assert verdicts == {True, False}


def described(pilot):
    return Resource(
        setup="default", vo=VO, cpu_time=pilot.cpu_time, site=pilot.site, grid_ce=pilot.ce,
        platforms=(pilot.platform,), tags=pilot.tags, job_types=pilot.job_types, generic=not pilot.group,
        owner=pilot.owner, owner_group=pilot.group, job_sharing=pilot.group in SHARING,
    )  # fmt: skip


def test_a_job_given_twice_is_found():
    with pytest.raises(InvalidError, match="twice"):
        check([QUEUE], jobs(0, 0), [PILOT, PILOT], [Match(1, 0), Match(1, 1)])


def test_a_job_given_to_a_pilot_that_does_not_fit_is_found():
    short = Pilot(site="A", ce="ce", platform="x86_64-el9", cpu_time=500)
    with pytest.raises(InvalidError, match="needs 5000 s"):
        check([QUEUE], jobs(0), [short], [Match(1, 0)])


def test_matches_are_counted_by_queue():
    assert check([QUEUE, QUEUE], jobs(0, 1, 1), [PILOT], [Match(2, 0), Match(3, 0)]) == {1: 2}


def test_a_pilot_that_got_nothing_though_a_job_fits_is_found():
    check_best([QUEUE], [], [(PILOT, None)])
    with pytest.raises(InvalidError, match="got nothing"):
        check_best([QUEUE], [0], [(PILOT, None)])


def test_the_judge_of_two_ads_agrees_with_the_matcher():
    shape = msgspec.structs.replace(SHAPE, sites=5)
    elements = make_elements(shape, 20)
    ads = {(each.site, each.ce): said(each) for each in elements}
    pilots = at_elements(make_pilots(shape, 60), elements)
    queues = with_expressions(make_queues(shape), 50)
    judge = Judge(queues, pilots, elements)
    judged = set()
    for at, queue in enumerate(queues):
        required = requirements_of(describe(queue), queue.owner, queue.group, VO, DEFAULT_SEGMENTS)
        for n, pilot in enumerate(pilots):
            resource = with_ad(described(pilot), ads[pilot.site, pilot.ce])
            fault = mismatch(queue, pilot) or judge.mismatch(at, n)
            assert (fits(required, resource) is None) == (not fault)
            assert rank_of_site(required, resource) == judge.rank(at, n)
            judged.add((fault.split(" ")[:2] == ["the", "job"], not fault))
    assert len(judged) == 3


def rank_of_site(required, resource):
    ad = resource_ad(resource)
    return 0.0 if ad.rank is None else number(ad.rank, job_ad(job_attributes(required)), ad)


def said(element):
    return advertised(element.attributes, {}, element.requirements, element.rank)
