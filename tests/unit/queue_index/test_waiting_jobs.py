"""The waiting jobs of one level: one of the ten oldest, whatever comes, goes, or is of another matcher's part."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.matching.strategies import asks, new_index, offers
from wms.ids import JobId, TaskQueueId
from wms.queue_index.waiting_jobs import OLDEST, MatcherShare, WaitingJobs


def unroll(_):
    raise AssertionError("there is no block")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("aaaadt"), st.integers(0, 300)), max_size=400), st.integers(0, 9))
def test_waiting_against_a_set(steps, seed):
    rng = np.random.default_rng(seed)
    waiting, model = WaitingJobs(number=0, tq_id=TaskQueueId(1), user_priority=1, weight=1.0), set()
    for step, job in steps:
        if step == "a" and job not in model:
            waiting.add(job)
            model.add(job)
        elif step == "d" and job in model:
            waiting.discard(job)
            model.remove(job)
        elif step == "t" and model:
            taken = waiting.take(rng.random(), unroll)
            assert taken in sorted(model)[:OLDEST]
            model.remove(taken)
        assert waiting.count == len(model)
    assert sorted(waiting) == sorted(model)


def test_parts_share_the_jobs_and_leave_none():
    parts = [MatcherShare(k, 3) for k in range(3)]
    jobs = np.arange(1, 30_001)
    owned = np.array([part.owned(jobs) for part in parts])
    assert (owned.sum(axis=0) == 1).all()
    assert (owned.sum(axis=1) > 9_000).all()
    assert all(
        part.owns(JobId(job)) == owned[k, job - 1]
        for k, part in enumerate(parts)
        for job in jobs[:500].tolist()
    )
    with pytest.raises(ValueError, match="no part 3 of 3"):
        new_index().set_part(3, 3)


def test_with_no_leeway_one_of_the_ten_oldest_of_all_parts_is_given():
    rng = np.random.default_rng(61)
    for parts in (2, 4):
        for trial in range(100):
            index = new_index()
            index.add_queue(1, asks())
            index.load([1] * 400, [1] * 400, range(1_000 * trial + 1, 1_000 * trial + 401))
            index.set_part(trial % parts, parts)
            waiting = [job for job, _ in index.jobs(1)]
            for _ in range(3):
                [pick] = index.select(offers(), 1, rng)
                assert pick.job_id in sorted(waiting)[:OLDEST]
                waiting.remove(pick.job_id)
