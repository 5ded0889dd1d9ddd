"""Simulations: what is known by hand, what must always hold, and every match held against the rules word for word."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.unit.matching import reference
from tests.unit.simulation.workloads import job, site
from wms.matching.clauses import fits
from wms.matching.shares import GroupShare
from wms.simulation.figures import figures
from wms.simulation.record import NEVER
from wms.simulation.scenario import LimitRules, PilotRules, Scenario
from wms.simulation.simulation import Simulation
from wms.simulation.workload import Workload, by_time

PROMPT = PilotRules(plan_every_seconds=1, latency_seconds=60, idle_seconds=300)


def play(jobs, watcher=None, **scenario):
    usual: dict[str, Any] = {"pilots": PROMPT, "sites": (site(),)}
    told = Scenario(**usual | scenario)
    return Simulation(Workload(by_time(jobs)), told, watcher).run(), told


def test_one_slot_serves_jobs_in_turn():
    record, scenario = play([job(0), job(70), job(170), job(1000)])
    # The pilot comes after 60 s. When the third job has ended at 360 it waits 300 s and goes; another comes for the fourth.
    assert list(record.first_start) == [60, 160, 260, 1060]
    assert list(record.ended) == [160, 260, 360, 1160]
    assert record.pilots == 2
    found = figures(record, scenario)
    assert found.waits is not None
    assert (found.waits.mean, found.waits.p50, found.makespan) == (75.0, 75.0, 1160)
    assert found.used == pytest.approx(400 / 1160)
    assert found.jobs_per_hour == pytest.approx(4 / 1160 * 3600)


def test_a_job_that_comes_to_an_idle_pilot_does_not_wait():
    record, _ = play([job(0), job(200), job(430)])
    assert list(record.first_start) == [60, 200, 430]
    assert record.pilots == 1


def test_machines_twice_as_fast_run_jobs_in_half_the_time():
    record, _ = play([job(0), job(1)], sites=(site(speed=2),))
    assert list(record.ended) in ([110, 160], [160, 110])


def test_a_pilot_of_four_cores_runs_jobs_of_two_and_one():
    jobs = [job(0, cores=2), job(0), job(0), job(0, cores=2)]
    record, _ = play(jobs, sites=(site(slots=4, cores=4),))
    assert record.pilots == 2 or max(record.ended) == 260
    assert sorted(record.ended)[:2] == [160, 160]


def test_a_pilot_at_the_end_of_its_life_takes_no_more():
    pilots = PilotRules(plan_every_seconds=1, latency_seconds=60, lifetime_seconds=600)
    record, _ = play([job(at, 90) for at in range(0, 600, 100)], pilots=pilots)
    assert record.pilots > 1
    assert sum(record.done) == 6


SITES = ("s", "t", "u")


@st.composite
def workloads(draw):
    count = draw(st.integers(1, 40))
    return [
        job(
            draw(st.floats(0, 2_000)),
            draw(st.sampled_from([0.0, 1.0, 50.0, 700.0])),
            owner=draw(st.sampled_from("abc")),
            group=draw(st.sampled_from("gh")),
            vo=draw(st.sampled_from("vw")),
            site=draw(st.sampled_from(["", *SITES])),
            cores=draw(st.sampled_from([1, 1, 2, 5])),
            cpu=draw(st.sampled_from([100, 4_000])),
            memory=draw(st.sampled_from([0, 0, 500, 5_000])),
            priority=draw(st.sampled_from([0.0, 1.0, 5.0])),
        )
        for _ in range(count)
    ]


@st.composite
def scenarios(draw):
    sites = tuple(
        site(
            name,
            draw(st.integers(0, 6)),
            cores=draw(st.sampled_from([1, 2])),
            memory_mb=draw(st.sampled_from([0, 800])),
            failure=draw(st.sampled_from([0.0, 0.4, 1.0])),
            vos=draw(st.sampled_from([(), ("v",)])),
            max_cpu_time=draw(st.sampled_from([600, 6_000])),
        )
        for name in SITES
    )
    limits = tuple(
        draw(
            st.lists(
                st.builds(
                    LimitRules,
                    site=st.sampled_from(["*", "s"]),
                    attribute=st.just("owner"),
                    value=st.sampled_from(["*", "a"]),
                    most=st.integers(1, 2),
                ),
                max_size=2,
                unique_by=lambda limit: limit.key,
            )
        )
    )
    return {
        "sites": sites,
        "limits": limits,
        "draw": draw(st.sampled_from(["dirac", "proportional"])),
        "one_vo": draw(st.booleans()),
        "placement": draw(st.sampled_from(["traced", "anywhere"])),
        "seed": draw(st.integers(0, 9)),
        "pilots": PilotRules(
            plan_every_seconds=draw(st.sampled_from([1, 60])),
            latency_seconds=draw(st.sampled_from([0, 60])),
            idle_seconds=draw(st.sampled_from([0, 300])),
            lifetime_seconds=draw(st.sampled_from([5_500, 500_000])),
        ),
    }


def busiest(begins, ends, amounts):
    """The most that was in use at a time; what ends at a moment makes room for what begins then."""
    moments = sorted(
        [(end, 0, -a) for end, a in zip(ends, amounts, strict=True)]
        + [(begin, 1, a) for begin, a in zip(begins, amounts, strict=True)]
    )
    now = most = 0
    for _, _, amount in moments:
        now += amount
        assert now >= 0 or amount < 0
        most = max(most, now)
    assert now == 0
    return most


@settings(max_examples=40, deadline=None)
@given(workloads(), scenarios())
def test_work_is_conserved(jobs, scenario):
    record, told = play(jobs, **scenario)
    stuck = {each.requirements for each in record.stuck}
    for number, asked in enumerate(record.asked):
        ended = record.ended[number] != NEVER
        places = [place.element for place in record.places]
        possible = any(
            fits(asked, each.pilot_resource(vo=asked.vo)) is None and (not each.vos or asked.vo in each.vos)
            for each in places
        )
        assert ended is possible
        assert (asked in stuck) is not possible
        assert record.done[number] <= ended
        assert record.attempts[number] <= told.attempts
        assert record.done[number] or not ended or record.attempts[number] == told.attempts
    assert len(record.runs) == sum(record.attempts)
    runs = record.runs
    of_job: dict[int, list[tuple[float, float]]] = {}
    for n, number in enumerate(runs.job):
        of_job.setdefault(number, []).append((runs.started[n], runs.ended[n]))
    for number, attempts in of_job.items():
        assert attempts[0][0] == record.first_start[number] >= record.arrivals[number].at
        assert all(one[1] <= other[0] for one, other in pairwise(attempts))
    for number, place in enumerate(record.places):
        mine = [n for n in range(len(runs)) if runs.element[n] == number and runs.ended[n] > runs.started[n]]
        used = busiest(
            [runs.started[n] for n in mine], [runs.ended[n] for n in mine], [runs.cores[n] for n in mine]
        )
        assert used <= place.element.slots
        for limit in told.limits:
            for owner in "abc" if limit.value == "*" else limit.value:
                if limit.site in ("*", place.element.site):
                    his = [n for n in mine if record.asked[runs.job[n]].owner == owner]
                    together = busiest(
                        [runs.started[n] for n in his], [runs.ended[n] for n in his], [1] * len(his)
                    )
                    assert together <= limit.most
    figures(record, told)


class Reference:
    """Keeps the queues by the literal rules, and holds every match against them."""

    def __init__(self, shares):
        self.shares = shares
        self.queues = {}
        self.of_job = {}
        self.matches = 0
        self.simulation: Simulation

    def queued(self, job, queue):
        if job not in self.of_job:
            self.look()
        self.queues.setdefault(queue.number, reference.Queue(queue.requirements)).jobs[job] = 1.0
        self.of_job[job] = queue.number

    def matched(self, job, resource, now):
        number = self.of_job[job]
        assert number in reference.candidates(self.queues, resource, self.shares)
        same = sorted(self.queues[number].jobs)
        assert job in same[:10]
        del self.queues[number].jobs[job]
        self.matches += 1

    def look(self):
        """Between two events no pilot asks in vain for what there is."""
        now = self.simulation._agenda.now
        for pilot_group in self.simulation._manned:
            for pilot in pilot_group.asking:
                assert not reference.candidates(self.queues, pilot_group.resource(pilot, now), self.shares)


@settings(max_examples=40, deadline=None)
@given(workloads(), scenarios())
def test_every_match_is_one_by_the_rules_and_none_is_missed(jobs, scenario):
    scenario = scenario | {"limits": (), "shares": {"v": {"g": GroupShare(job_share=3_000)}}}
    jobs = [each for each in jobs if each.user_priority == 1.0] or [job(0)]
    watcher = Reference({("v", "g"): reference.Share(3_000)})
    told = Scenario(**scenario)
    simulation = Simulation(Workload(by_time(jobs)), told, watcher)
    watcher.simulation = simulation
    record = simulation.run()
    assert watcher.matches == len(record.runs)


def test_the_draw_is_the_references():
    shares = {
        "v": {
            "g": GroupShare(job_share=2_000),
            "h": GroupShare(job_share=1_000),
            "i": GroupShare(job_share=500),
        }
    }
    jobs = [job(0, group=group, owner=owner, site="") for group, owner in ("ga", "hb", "hc", "id")]
    seen = dict.fromkeys("abcd", 0)
    for seed in range(600):
        record, _ = play(jobs, seed=seed, shares=shares)
        first = min(range(4), key=record.first_start.__getitem__)
        seen[record.asked[first].owner] += 1
    queues = {n: reference.Queue(each.requirements, {n: 1.0}) for n, each in enumerate(jobs)}
    plain = {("v", name): reference.Share(share.job_share) for name, share in shares["v"].items()}
    weights = reference.weights(queues, plain, list(queues))
    chances = reference.first_of([weights[n] for n in range(4)])
    assert reference.goodness(list(seen.values()), chances) > 1e-4


def used_by(shares, draw="proportional"):
    jobs = [job(n / 10, 50, owner=group, group=group) for n in range(1_000) for group in "gh"]
    record, _ = play(jobs, shares={"v": shares}, draw=draw, sites=(site(slots=4),))
    half = max(record.ended) / 2
    return [
        sum(
            asked.owner == group and 0 <= start < half
            for asked, start in zip(record.asked, record.first_start, strict=True)
        )
        for group in "gh"
    ]


def test_doubling_a_share_shifts_usage():
    even = used_by({})
    double = used_by({"g": GroupShare(job_share=2_000)})
    assert even[0] / even[1] == pytest.approx(1, rel=0.15)
    assert double[0] / double[1] == pytest.approx(2, rel=0.15)


def test_a_rate_spaces_matches():
    limit = LimitRules(kind="rate", site="s", attribute="vo", value="v", most=1, per_second=0.1)
    record, _ = play([job(0, 1)] * 5, sites=(site(slots=5),), limits=(limit,))
    starts = sorted(record.first_start)
    assert [b - a for a, b in pairwise(starts)] == pytest.approx([10] * 4, abs=1e-3)


def test_what_sites_lose_is_tried_again_and_fails_in_the_end():
    record, _ = play([job(0)] * 20, sites=(site(slots=20, failure=1),), attempts=3)
    assert list(record.attempts) == [3] * 20
    assert not any(record.done)
    record, _ = play([job(0)] * 300, sites=(site(slots=300, failure=0.2),), attempts=10)
    assert all(record.done)
    assert len(record.runs) == pytest.approx(300 / 0.8, rel=0.1)


def test_what_can_never_run_is_told_with_its_reasons():
    jobs = [job(0), job(0, memory=10_000), job(0, memory=10_000), job(0, vo="w", cores=3)]
    record, scenario = play(jobs)
    found = figures(record, scenario)
    assert (found.never, found.done) == (3, 1)
    assert [(each.vo, each.jobs) for each in found.never_why] == [("v", 2), ("w", 1)]
    assert "memory" in found.never_why[0].reasons[0]
    assert "3Processors" in found.never_why[1].reasons[0]


def test_the_same_seed_is_the_same_result_and_luck_is_the_jobs():
    jobs = [job(n, 200, owner="ab"[n % 2]) for n in range(200)]
    one, other = (play(jobs, sites=(site(slots=5, failure=0.3),), seed=4)[0] for _ in range(2))
    assert one.first_start == other.first_start
    assert one.runs.ended == other.runs.ended
    faster, _ = play(jobs, sites=(site(slots=9, failure=0.3),), seed=4)
    assert faster.attempts == one.attempts


def test_a_job_that_wants_a_whole_node_runs_alone_in_its_pilot():
    whole = [
        replace(job(at), requirements=replace(job(at).requirements, tags=("WholeNode", "MultiProcessor")))
        for at in (0, 0)
    ]
    there = (site(slots=4, cores=4, tags=("WholeNode",)),)
    record, _ = play([*whole, job(0)], sites=there)
    starts = sorted(record.first_start)
    assert len({*starts}) == 3, "one after the other"
    assert list(record.done) == [True] * 3
