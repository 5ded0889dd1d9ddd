"""The level of each waiting job, against a dictionary of jobs and a list of blocks."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from wms.ids import JobId
from wms.queue_index.job_levels import NOWHERE, JobLevels
from wms.queue_index.waiting_jobs import IdRange

IDS = st.integers(0, 400) | st.integers(10**9, 10**9 + 100)
LEVELS = st.integers(1, 9)


class LevelsAgainstDictionary(RuleBasedStateMachine):
    """Jobs put, popped and looked for, each by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.levels = JobLevels()
        self.jobs: dict[int, int] = {}

    @rule(job=IDS, level=LEVELS)
    def put(self, job: int, level: int) -> None:
        if job not in self.jobs:
            self.levels.put(JobId(job), level)
            self.jobs[job] = level

    @rule(jobs=st.lists(IDS, max_size=80))
    def pop(self, jobs: list[int]) -> None:
        for job in jobs:
            assert self.levels.pop(JobId(job)) == self.jobs.pop(job, NOWHERE)

    @rule(jobs=st.lists(IDS, max_size=80, unique=True), level=LEVELS)
    def fill_anew(self, jobs: list[int], level: int) -> None:
        if not self.jobs:
            jobs.sort()
            self.levels.put_all(np.array(jobs, np.int64), np.full(len(jobs), level, np.int32))
            self.jobs = dict.fromkeys(jobs, level)

    @rule(first=IDS, length=st.integers(0, 2_000))
    def within(self, first: int, length: int) -> None:
        last = first + length
        expected = {job: level for job, level in self.jobs.items() if first <= job <= last}
        assert dict(self.levels.within(first, last)) == expected

    @invariant()
    def same(self) -> None:
        assert len(self.levels) == len(self.jobs)
        assert all(self.levels.get(JobId(job)) == level for job, level in self.jobs.items())


TestLevelsAgainstDictionary = LevelsAgainstDictionary.TestCase
TestLevelsAgainstDictionary.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


@pytest.fixture
def levels() -> JobLevels:
    found = JobLevels()
    for first, last in ((200, 299), (10, 19), (100, 109)):
        found.add_block(IdRange(first, last, 1))
    return found


def ends(blocks: Any) -> list[tuple[int, int]]:
    return [(each.first, each.last) for each in blocks]


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0, 9, []),
        (0, 10, [(10, 19)]),
        (19, 100, [(10, 19), (100, 109)]),
        (20, 99, []),
        (105, 105, [(100, 109)]),
        (0, 10**9, [(10, 19), (100, 109), (200, 299)]),
        (300, 10**9, []),
    ],
)
def test_blocks_are_found_by_any_id_that_they_share_with_a_range(
    levels: JobLevels, first: int, last: int, expected: list[tuple[int, int]]
) -> None:
    assert ends(levels.blocks_within(first, last)) == expected


def test_a_job_is_in_the_block_that_holds_its_id(levels: JobLevels) -> None:
    found = {job: levels.block_of(JobId(job)) for job in (9, 10, 19, 20, 250)}
    assert {job: block and (block.first, block.last) for job, block in found.items()} == {
        9: None,
        10: (10, 19),
        19: (10, 19),
        20: None,
        250: (200, 299),
    }


def test_jobs_of_blocks_are_counted_with_the_others(levels: JobLevels) -> None:
    levels.put(JobId(5), 1)
    assert len(levels) == 121
    (block,) = levels.blocks_within(100, 100)
    levels.shorten(block, 108)
    assert len(levels) == 113
    assert levels.block_of(JobId(107)) is None
    levels.drop_block(block)
    assert len(levels) == 111
    assert ends(levels.blocks_within(0, 1_000)) == [(10, 19), (200, 299)]


def test_memory_of_jobs_that_are_gone_is_used_again() -> None:
    levels = JobLevels()
    tracemalloc.start()
    for start in range(0, 50_000, 500):
        for job in range(start, start + 500):
            levels.put(JobId(job), 1)
        for job in range(start, start + 500):
            levels.pop(JobId(job))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(levels) == 0
    assert held < 100_000, "50,000 jobs that came and went would take 200,000 bytes"
