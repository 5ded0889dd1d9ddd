"""Weights of task queues: the share formula, classes, background."""

import numpy as np
import pytest

from tests.unit.matching.strategies import asks, new_index, offers
from wms.matching.share_weights import seen_parts, weights
from wms.matching.shares import GroupShare


def weigh(group, owners, means):
    return weights(group, np.array(owners, dtype=np.int32), np.array(means, dtype=np.float64)).tolist()


def test_a_sharing_group_spreads_its_whole_share_by_priority():
    group = GroupShare(job_share=600, job_sharing=True)
    assert weigh(group, [0, 1, 2], [1, 2, 3]) == pytest.approx([100, 200, 300])


def test_other_groups_give_each_owner_an_equal_part():
    assert weigh(GroupShare(), [0, 0, 1], [1, 3, 7]) == pytest.approx([125, 375, 500])
    assert weigh(GroupShare(), [4, 4, 9], [1, 3, 7]) == pytest.approx([125, 375, 500])


def test_no_weight_is_below_the_lightest():
    assert weigh(GroupShare(), [0, 0], [1e-5, 1e6]) == pytest.approx([0.001, 1000])


def test_background_queues_are_lightest_and_take_nothing_from_the_others():
    group = GroupShare(background=True)
    assert weigh(group, [0, 0, 0], [0.1, 1, 1]) == pytest.approx([0.001, 500, 500])
    assert weigh(group, [0], [0.05]) == [0.001]
    assert weigh(GroupShare(), [0, 0], [0.1, 0.9]) == pytest.approx([100, 900])


def test_a_class_weighs_the_same_whatever_a_resource_sees_of_it():
    own, totals = np.array([10.0, 30.0, 5.0]), np.array([7.0, 200.0, 5.0])
    parts = seen_parts(own, np.array([1, 1, 2]), totals)
    assert (own / parts).tolist() == pytest.approx([50, 150, 5])


def test_a_class_without_jobs_divides_by_nothing():
    assert (seen_parts(np.zeros(2), np.array([0, 1]), np.array([0.0, 3.0])) > 0).all()


def wins(index, resource, draws=4_000):
    rng = np.random.default_rng(5)
    counts: dict[int, int] = {}
    for _ in range(draws):
        picks = index.select(resource, 1, rng)
        counts[picks[0].tq_id] = counts.get(picks[0].tq_id, 0) + 1
        index.restore(picks)
    return counts


def test_a_class_split_over_many_queues_weighs_no_more_than_its_queues():
    """DIRAC gives the lone queue 0.9 % of the draws here, though it is one of eleven equal ones."""
    index = new_index(law="proportional")
    for n in range(10):
        index.add_queue(n, asks(sites=(f"S{n}", "X"), tags=("a",)))
        index.add(n, 1, range(100 * n, 100 * n + 12))
    index.add_queue(10, asks())
    index.add(10, 1, range(1_000, 1_012))
    assert wins(index, offers(site="X", tags=("a",)))[10] / 4_000 == pytest.approx(1 / 11, abs=0.02)


def test_a_group_seen_in_part_keeps_its_share():
    """Ten sites, one queue of the group at each: at any site it holds its own against a group that is everywhere."""
    index = new_index(law="proportional")
    for n in range(10):
        index.add_queue(n, asks(owner_group="spread", sites=(f"S{n}",)))
        index.add(n, 1, range(100 * n, 100 * n + 12))
    index.add_queue(10, asks(owner_group="whole"))
    index.add(10, 1, range(1_000, 1_012))
    for site in ("S0", "S7"):
        assert wins(index, offers(site=site))[10] / 4_000 == pytest.approx(0.5, abs=0.035)


def test_weights_follow_what_waits():
    index = new_index(groups={"g": GroupShare(job_share=900)})
    index.add_queue(1, asks(owner="a"))
    index.add_queue(2, asks(owner="b"))
    index.add_queue(3, asks(owner="b", tags=("x",)))
    index.add(1, 1, [1])
    assert [index.weight(q) for q in (1, 2, 3)] == pytest.approx([900, 0, 0])
    index.add(2, 1, [2])
    index.add(3, 2, [3])
    assert [index.weight(q) for q in (1, 2, 3)] == pytest.approx([450, 150, 300])
    index.add(2, 3, [4])
    assert [index.weight(q) for q in (1, 2, 3)] == pytest.approx([450, 225, 225])
    index.discard(1)
    assert [index.weight(q) for q in (1, 2, 3)] == pytest.approx([0, 450, 450])
    index.set_shares(
        {("v", "g"): GroupShare(job_share=100, job_sharing=True), ("w", "g"): GroupShare(job_share=7)}
    )
    assert [index.weight(q) for q in (1, 2, 3)] == pytest.approx([0, 50, 50])
