"""The index as a container: no job twice, none lost, whatever comes and goes; refusals and their reasons."""

import tracemalloc
from collections import Counter
from itertools import count
from operator import attrgetter

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from services.matcher.matching import FEW_SLOTS, leeway_for
from tests.unit.matching import reference
from tests.unit.matching.strategies import asks, new_index, offers, requirements, resources
from wms.ids import JobId
from wms.matching.grouping import Requirements
from wms.queue_index.index import UnknownQueueError
from wms.queue_index.waiting_jobs import OLDEST, MatcherShare

IDS = st.integers(1, 120)


QUEUES = st.integers(1, 6)


PRIORITIES = st.sampled_from([0, 1, 1, 5, 10])


def contents(index):
    found = [(job, tq, priority) for tq in index.queue_ids() for job, priority in index.jobs(tq)]
    assert len(found) == len({job for job, _, _ in found}) == len(index)
    return {job: (tq, priority) for job, tq, priority in found}


class IndexAgainstDictionary(RuleBasedStateMachine):
    """Random adds, discards, picks and queues against a dictionary of jobs."""

    def __init__(self):
        super().__init__()
        self.index = new_index(cached_resources=3)
        self.queues = {}
        self.jobs = {}

    @initialize(seed=st.integers(0, 10**6))
    def seed(self, seed):
        self.rng = np.random.default_rng(seed)

    @rule(tq=QUEUES, wanted=requirements())
    def add_queue(self, tq, wanted):
        if tq not in self.queues:
            self.index.add_queue(tq, wanted)
            self.queues[tq] = wanted
        self.index.add_queue(tq, self.queues[tq])

    @rule(tq=QUEUES)
    def remove_queue(self, tq):
        inside = [job for job, (of, _) in self.jobs.items() if of == tq]
        assert self.index.remove_queue(tq) == len(inside)
        self.queues.pop(tq, None)
        for job in inside:
            del self.jobs[job]

    @precondition(lambda self: self.queues)
    @rule(data=st.data(), priority=PRIORITIES, ids=st.lists(IDS, max_size=60))
    def add(self, data, priority, ids):
        tq = data.draw(st.sampled_from(sorted(self.queues)))
        assert self.index.add(tq, priority, ids) == len(set(ids) - set(self.jobs))
        self.jobs.update(dict.fromkeys(ids, (tq, priority)))

    @precondition(lambda self: self.queues)
    @rule(
        data=st.data(), rows=st.lists(st.tuples(PRIORITIES, IDS), max_size=60, unique_by=lambda row: row[1])
    )
    def load(self, data, rows):
        tqs = data.draw(
            st.lists(st.sampled_from(sorted(self.queues)), min_size=len(rows), max_size=len(rows))
        )
        new = len({job for _, job in rows} - set(self.jobs))
        assert self.index.load(tqs, [priority for priority, _ in rows], [job for _, job in rows]) == new
        self.jobs.update({job: (tq, priority) for tq, (priority, job) in zip(tqs, rows, strict=True)})

    @rule(ids=st.lists(IDS, max_size=60))
    def discard(self, ids):
        assert self.index.discard(*ids) == len(set(ids) & set(self.jobs))
        for job in ids:
            self.jobs.pop(job, None)

    def oldest(self, same):
        return same[:OLDEST]

    @rule(resource=resources(), number=st.integers(0, 12), put_back=st.booleans())
    def select(self, resource, number, put_back):
        fitting = {job: tq for job, (tq, _) in self.jobs.items() if reference.fits(self.queues[tq], resource)}
        picks = self.index.select(resource, number, self.rng)
        assert len(picks) == min(number, len(fitting))
        left = dict(self.jobs)
        for pick in picks:
            assert left[pick.job_id] == (pick.tq_id, pick.user_priority)
            assert pick.job_id in fitting
            segment = self.queues[pick.tq_id].cpu_segment
            assert all(self.queues[tq].cpu_segment <= segment for job, tq in fitting.items() if job in left)
            same = sorted(j for j, at in left.items() if at == left[pick.job_id])
            assert pick.job_id in self.oldest(same)
            del left[pick.job_id]
        if put_back:
            self.index.restore(picks)
        else:
            self.jobs = left

    @rule(resource=resources())
    def why_nothing(self, resource):
        fitting = {tq for tq, _ in self.jobs.values() if reference.fits(self.queues[tq], resource)}
        why = self.index.why_nothing(resource)
        if not why.refusal:
            assert why.fitting_queues == len(fitting)
            assert why.waiting_jobs == len(self.jobs)
            assert why.waiting_queues - why.fitting_queues == sum(c.queues for c in why.failed)

    @invariant()
    def same(self):
        assert contents(self.index) == self.jobs
        assert set(self.index.queue_ids()) == set(self.queues)


TestIndexAgainstDictionary = IndexAgainstDictionary.TestCase


TestIndexAgainstDictionary.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


def test_a_job_discarded_deep_inside_may_return():
    index = new_index()
    index.add_queue(1, asks())
    index.add(1, 1, range(1_000))
    for _ in range(3):
        assert index.discard(700) == 1
        assert index.add(1, 1, [700, 700]) == 1
    rng = np.random.default_rng(1)
    picks = index.select(offers(), 2_000, rng)
    assert sorted(pick.job_id for pick in picks) == list(range(1_000))


def test_an_older_job_that_returns_is_among_the_first():
    index = new_index()
    index.add_queue(1, asks())
    index.add(1, 1, range(100, 200))
    index.add(1, 1, [5])
    rng = np.random.default_rng(1)
    first = [pick.job_id for pick in index.select(offers(), 60, rng)]
    assert 5 in first


def test_highest_cpu_segment_first():
    index = new_index()
    for n, segment in enumerate((500, 50_000, 5_000, 300_000)):
        index.add_queue(n, asks(cpu_segment=segment))
        index.add(n, 1, range(10 * n, 10 * n + 3))
    picks = index.select(offers(cpu_time=60_000), 99, np.random.default_rng(1))
    assert [pick.tq_id for pick in picks] == [1, 1, 1, 2, 2, 2, 0, 0, 0]
    assert index.count(3) == 3
    assert index.why_nothing(offers(cpu_time=60_000)).failed[0].clause == "CPU time"


def test_new_queues_are_seen_by_resources_known_before():
    index = new_index()
    rng = np.random.default_rng(1)
    index.add_queue(1, asks(sites=("A",)))
    index.add(1, 1, [1])
    assert index.select(offers(site="B", memory_mb=4_000), 5, rng) == []
    index.add_queue(2, asks(min_ram_mb=3_000))
    index.add(2, 1, [2])
    assert [p.job_id for p in index.select(offers(site="B", memory_mb=4_000), 5, rng)] == [2]
    index.add(2, 1, [3])
    assert index.select(offers(site="B", memory_mb=2_999), 5, rng) == []
    index.remove_queue(2)
    index.add_queue(3, asks(sites=("B",)))
    index.add(3, 1, [4])
    assert [p.job_id for p in index.select(offers(site="B", memory_mb=4_000), 5, rng)] == [4]


def test_queues_long_gone_leave_no_gaps():
    index, rng = new_index(), np.random.default_rng(1)
    jobs = count(1)
    for tq in range(3_000):
        index.add_queue(tq, asks(tags=(f"t{tq % 7}",)))
        index.add(tq, 1, [next(jobs), next(jobs)])
        if tq >= 50:
            assert index.remove_queue(tq - 50) == 2
    assert len(index) == 100
    assert len(index._queues) <= 1_100
    picks = index.select(offers(tags=tuple(f"t{n}" for n in range(7))), 200, rng)
    assert sorted(p.job_id for p in picks) == list(range(5_901, 6_001))


def test_a_bad_resource_is_refused_and_told_so():
    index = new_index()
    index.add_queue(1, asks())
    index.add(1, 1, [1])
    bad = offers(required_tags=("gpu",))
    assert index.select(bad, 1, np.random.default_rng(1)) == []
    assert index.why_nothing(bad).text() == "refused: RequiredTag gpu not among the resource's own tags"


def test_why_nothing_counts_by_clause_in_bounded_words():
    index = new_index()
    assert index.why_nothing(offers()).text() == "no job waits"
    for n in range(60):
        index.add_queue(n, asks(sites=(f"S{n}",) if n < 40 else (), tags=("gpu",), owner="x" * 300))
        index.add(n, 1, [n])
    why = index.why_nothing(offers(site="Z"))
    assert [(c.clause, c.queues, c.jobs) for c in why.failed] == [("site", 40, 40), ("tags", 20, 20)]
    assert "site (40 jobs in 40 queues, such as: the job may run at S0, this is Z)" in why.text()
    assert len(why.text()) < 4_000


def test_unknown_and_changed_queues():
    index = new_index()
    with pytest.raises(UnknownQueueError):
        index.add(1, 1, [1])
    index.add_queue(1, asks())
    with pytest.raises(ValueError, match="cannot change"):
        index.add_queue(1, asks(sites=("A",)))
    assert 1 in index
    assert 2 not in index
    assert index.remove_queue(2) == 0


def test_same_seed_same_picks():
    def run():
        index = new_index()
        for n in range(30):
            index.add_queue(n, asks(owner=f"o{n % 4}", owner_group=f"g{n % 3}"))
            index.add(n, n % 5, range(100 * n, 100 * n + 30))
        return index.select(offers(), 500, np.random.default_rng(9))

    assert run() == run()


def test_memory_of_a_million_jobs():
    rng = np.random.default_rng(1)
    index = new_index()
    for n in range(1_000):
        index.add_queue(n, asks(tags=(str(n),)))
    jobs = np.arange(300_000) + 10**7
    tqs, priorities = rng.integers(0, 1_000, len(jobs)), rng.integers(1, 4, len(jobs))
    tracemalloc.start()
    assert index.load(tqs, priorities, jobs) == len(jobs)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held / len(jobs) < 150


class RangesAgainstDictionary(IndexAgainstDictionary):
    """The same with ranges of ids, and with parts that change."""

    @precondition(lambda self: self.queues)
    @rule(data=st.data(), priority=PRIORITIES, first=IDS, length=st.integers(0, 70))
    def add_range(self, data, priority, first, length):
        tq = data.draw(st.sampled_from(sorted(self.queues)))
        ids = range(first, first + length + 1)
        assert self.index.add_range(tq, priority, ids[0], ids[-1]) == len(set(ids) - set(self.jobs))
        self.jobs.update(dict.fromkeys(ids, (tq, priority)))

    @rule(first=IDS, length=st.integers(0, 70))
    def discard_range(self, first, length):
        ids = range(first, first + length + 1)
        assert self.index.discard_range(ids[0], ids[-1]) == len(set(ids) & set(self.jobs))
        for job in ids:
            self.jobs.pop(job, None)

    @rule(parts=st.integers(1, 3), part=st.integers(0, 2))
    def set_part(self, parts, part):
        self.index.set_part(part % parts, parts)

    @rule(leeway=st.sampled_from([0, 3, 1_000]))
    def set_leeway(self, leeway):
        self.index.leeway = leeway

    def oldest(self, same):
        """Those of all parts with no leeway, else those of either."""
        part = self.index._part
        own = [job for job in same if part.owns(job)]
        return same[:OLDEST] if not self.index.leeway else [*own[:OLDEST], *same[:OLDEST]]


TestRangesAgainstDictionary = RangesAgainstDictionary.TestCase


TestRangesAgainstDictionary.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_jobs_that_come_by_and_by_find_room_and_are_all_given():
    index = new_index()
    index.add_queue(1, asks())
    jobs = range(1, 100_001)
    for start in jobs[::500]:
        index.add(1, 1, range(start, start + 500))
    assert len(index) == len(jobs)
    rng = np.random.default_rng(1)
    given = [pick.job_id for _ in jobs[::1000] for pick in index.select(offers(), 1_000, rng)]
    assert sorted(given) == list(jobs)


def test_a_range_takes_the_memory_of_one_and_is_given_by_age():
    index, rng = new_index(), np.random.default_rng(1)
    index.add_queue(1, asks())
    index.add(1, 1, range(3_000_000, 3_000_100))
    tracemalloc.start()
    assert index.add_range(1, 1, 1_000_000, 1_999_999) == 1_000_000
    assert index.discard_range(1_000_050, 1_999_999) == 999_950
    assert index.add_range(1, 1, 2_000_000, 2_999_999) == 1_000_000
    assert index.discard(2_500_000, 2_500_001) == 2
    assert tracemalloc.get_traced_memory()[0] < 100_000
    tracemalloc.stop()
    assert len(index) == index.count(1) == 1_000_148
    picks = [pick.job_id for pick in index.select(offers(), 250, rng)]
    assert all(job < 1_000_050 or 2_000_000 <= job < 2_000_220 for job in picks)
    assert {job for job in picks if job < 1_000_050} == set(range(1_000_000, 1_000_050))
    index.restore(index.select(offers(), 10, rng))
    assert len(index) == 999_898


def test_a_matcher_gives_its_own_part_of_a_level_first():
    indexes = [new_index(), new_index()]
    for k, index in enumerate(indexes):
        index.add_queue(1, asks())
        index.load([1] * 1_000, [1] * 1_000, range(1, 1_001))
        index.add_range(1, 1, 2_001, 3_000)
        index.set_part(k, 2)
        index.leeway = 900
    first = [
        [p.job_id for p in index.select(offers(), 900, np.random.default_rng(k))]
        for k, index in enumerate(indexes)
    ]
    assert not set(first[0]) & set(first[1])
    rest = [p.job_id for p in indexes[0].select(offers(), 5_000, np.random.default_rng(3))]
    assert sorted(first[0] + rest) == [*range(1, 1_001), *range(2_001, 3_001)]


@pytest.mark.parametrize("leeway", [0, 1, 20, 300])
def test_a_job_of_another_part_is_overtaken_by_no_more_than_the_leeway(leeway):
    """One of three matchers is asked alone, and three jobs come for each that it gives."""
    rng = np.random.default_rng(62)
    index = new_index()
    index.add_queue(1, asks())
    index.set_part(1, 3)
    index.leeway = leeway
    part, coming, waiting = MatcherShare(1, 3), count(1), set()
    overtaken: Counter[int] = Counter()
    for _ in range(1_000):
        fresh = [next(coming) for _ in range(3)]
        index.add(1, 1, fresh)
        waiting.update(fresh)
        [pick] = index.select(offers(), 1, rng)
        oldest = sorted(waiting)[:OLDEST]
        waiting.remove(pick.job_id)
        if pick.job_id not in oldest:
            overtaken.update(job for job in waiting if job < pick.job_id and not part.owns(JobId(job)))
    assert max(overtaken.values(), default=0) <= leeway
    # Of those that came first none is left behind.
    assert min(waiting) > 1_000 - 3 * leeway - 100


def test_leeway_is_none_for_few_slots_and_one_batch_for_many():
    assert leeway_for(1) == leeway_for(FEW_SLOTS - 1) == 0
    assert leeway_for(1_024) == 1_024


@pytest.mark.parametrize("column", ["_tables.weighing", "_tables.pools", "_tables.fitting", "_closed"])
def test_a_queue_that_no_column_takes_leaves_the_others_as_they_were(
    column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = new_index()
    index.add_queue(1, asks(sites=("A",)))
    index.add(1, 1.0, [11])

    append = attrgetter(column)(index).append

    def fail(requirements: Requirements) -> None:
        if "B" in requirements.sites:
            raise MemoryError
        append(requirements)

    with monkeypatch.context() as faulty:
        faulty.setattr(attrgetter(column)(index), "append", fail, raising=True)
        with pytest.raises(MemoryError):
            index.add_queue(2, asks(sites=("B",)))
    assert list(index.queue_ids()) == [1]
    index.add_queue(3, asks(sites=("C",)))
    index.add(3, 1.0, [33])
    index.add_queue(2, asks(sites=("B",)))
    index.add(2, 1.0, [22])
    rng = np.random.default_rng(1)
    given = {site: [pick.job_id for pick in index.select(offers(site=site), 4, rng)] for site in "ABC"}
    assert given == {"A": [11], "B": [22], "C": [33]}
