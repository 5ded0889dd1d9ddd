"""Weights of queues as jobs come and go, against the reference's of the same queues."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.unit.matching import reference
from tests.unit.matching.strategies import asks, of_v
from wms.matching.grouping import Requirements
from wms.matching.shares import GroupShare
from wms.queue_index.weights import Weights

SHARES = {
    "g": GroupShare(job_share=1000.0),
    "h": GroupShare(job_share=500.0, job_sharing=True),
    "b": GroupShare(job_share=100.0, background=True),
}
REFERENCE = {
    ("v", name): reference.Share(each.job_share, each.job_sharing, each.background)
    for name, each in SHARES.items()
}
PRIORITY = 3.0


def weighed(*wanted: Requirements, jobs: int = 1, mean: float = PRIORITY) -> Weights:
    found = Weights(of_v(SHARES))
    for slot, each in enumerate(wanted):
        found.append(each)
        found.note(slot, jobs, mean)
    return found


class WeightsAgainstReference(RuleBasedStateMachine):
    """Queues that get jobs and lose them: where each has one mean, weights are exact up to the lag of a group."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = Weights(of_v(SHARES))
        self.queues: dict[int, reference.Queue] = {}

    @rule(owner=st.sampled_from("op"), group=st.sampled_from(sorted(SHARES)), jobs=st.integers(0, 3))
    def append(self, owner: str, group: str, jobs: int) -> None:
        slot = len(self.queues)
        wanted = asks(owner=owner, owner_group=group, tags=(f"t{slot}",))
        self.weights.append(wanted)
        self.queues[slot] = reference.Queue(wanted)
        self.note(slot, jobs)

    @rule(slot=st.integers(0, 30), jobs=st.integers(0, 3))
    def note(self, slot: int, jobs: int) -> None:
        if slot in self.queues:
            self.queues[slot].jobs = dict.fromkeys(range(jobs), PRIORITY)
            self.weights.note(slot, jobs, PRIORITY if jobs else 0.0)

    @invariant()
    def same(self) -> None:
        expected = reference.plain_weights(self.queues, REFERENCE)
        for group in SHARES:
            of_group = [
                slot for slot, queue in self.queues.items() if queue.requirements.owner_group == group
            ]
            whole = sum(expected.get(slot, 0.0) for slot in of_group)
            off = sum(abs(self.weights.weight(slot) - expected.get(slot, 0.0)) for slot in of_group)
            assert off <= 0.03 * whole + 1e-9, (group, of_group)
        for slot, queue in self.queues.items():
            assert (self.weights.weight(slot) > 0) == bool(queue.jobs)


TestWeightsAgainstReference = WeightsAgainstReference.TestCase
TestWeightsAgainstReference.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)


def test_a_change_of_priority_moves_weight_within_its_group() -> None:
    weights = weighed(asks(owner="a"), asks(owner="a", tags=("x",)), asks(owner_group="h"))
    assert [weights.weight(slot) for slot in range(3)] == pytest.approx([500, 500, 500])
    weights.note(0, 1, 3 * PRIORITY)
    assert [weights.weight(slot) for slot in range(3)] == pytest.approx([750, 250, 500])


def test_only_a_group_that_changed_by_enough_is_weighed_anew() -> None:
    weights = weighed(*(asks(owner="a", tags=(f"t{n}",)) for n in range(400)))
    weights.refresh()
    version = weights.version
    weights.note(7, 0, 0.0)
    assert weights.weight(7) == 0.0, "a queue that emptied weighs nothing from that moment on"
    assert weights.version == version
    for slot in range(10):
        weights.note(slot, 0, 0.0)
    weights.refresh()
    assert weights.version == version + 1
    assert weights.weight(200) == pytest.approx(1000 / 390)


def test_shares_count_by_usage_for_the_owners_that_are_named() -> None:
    weights = weighed(asks(owner="a"), asks(owner="b"))
    weights.count_usage({("v", "g"): {"a": 0.5}})
    assert [weights.weight(slot) for slot in range(2)] == pytest.approx([250, 500])
    weights.count_usage({})
    assert [weights.weight(slot) for slot in range(2)] == pytest.approx([500, 500])


def test_a_share_that_changed_counts_once_it_is_told() -> None:
    shares = of_v({"g": GroupShare(job_share=10.0)})
    weights = Weights(shares)
    weights.append(asks())
    weights.note(0, 1, 1.0)
    assert weights.weight(0) == pytest.approx(10)
    shares["v", "g"] = GroupShare(job_share=20.0)
    assert weights.weight(0) == pytest.approx(10)
    weights.reshare(("v", "g"))
    assert weights.weight(0) == pytest.approx(20)


def test_owners_wait_as_long_as_a_queue_of_theirs_has_jobs() -> None:
    weights = weighed(asks(owner="a"), asks(owner="a", tags=("x",)), asks(owner="b"), asks(owner="c", vo="w"))
    weights.note(0, 0, 0.0)
    weights.vacate(2)
    assert weights.waiting_owners() == {("v", "g"): {"a"}, ("w", "g"): {"c"}}


def test_a_class_has_the_queues_that_differ_in_where_they_may_be_seen_alone() -> None:
    weights = weighed(asks(sites=("S",)), asks(sites=("T",)), asks(tags=("x",)))
    weights.refresh()
    classes = weights.classes.values.tolist()
    assert classes[0] == classes[1] != classes[2]
    assert weights.class_sizes.values.tolist() == [2, 1]
    assert weights.class_weights.values.tolist() == pytest.approx([2000 / 3, 1000 / 3])


def test_tiers_count_what_arrives_and_what_empties() -> None:
    weights = Weights({})
    wanted: Any = asks()
    tier = weights.tier(wanted)
    weights.append(wanted)
    weights.note(0, 1, 1.0)
    filled = tier.filled
    weights.note(0, 2, 1.0)
    assert (tier.filled, tier.emptied) == (filled, 0)
    weights.note(0, 0, 0.0)
    weights.note(0, 0, 0.0)
    assert tier.emptied == 1
    weights.note(0, 1, 1.0)
    assert tier.filled == filled + 1
    assert weights.tier(asks(cpu_segment=5_000)) is not tier
