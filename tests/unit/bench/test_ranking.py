"""The broker's ranking is better than chance and than the shortest queue, on a small grid whose truth is known."""

import pytest

from bench.choices import LateOracle, loaded
from bench.grid import AD_SECONDS, Grid, GridJob, GridSite
from bench.grid_workload import made_grid
from bench.ranking import OURS, check, compare, goal, summary
from bench.validity import InvalidError
from wms.broker.candidate import Candidate
from wms.site import ComputingElement


def test_the_broker_delivers_sooner_than_chance_and_the_shortest_queue() -> None:
    found = summary([compare(*made_grid(seed, 8, 200), seed) for seed in (11, 12)])
    assert found["ratio"]["random"] <= 0.75
    assert found["ratio"]["shortest queue"] < 1.0
    assert found["ratio"]["shortest queue, own jobs counted"] < 1.0
    assert 0.8 <= found["parts"]["delivery"]["covered"] <= 0.98


def test_the_oracle_knows_when_a_job_ends() -> None:
    sites = [GridSite("a", 1, speed=1.0, bandwidth=1.0), GridSite("b", 2, speed=0.5, bandwidth=1.0)]
    ended: list[GridJob] = []
    grid = Grid(sites, ended.append)
    foretold: list[float] = []

    def place(job: GridJob) -> int:
        foretold.append(grid.true_end(job, len(foretold) % 2))
        return (len(foretold) - 1) % 2

    grid.run([GridJob(float(n), 100.0 + n, bytes_in=n) for n in range(8)], place)
    assert foretold == [job.ended for job in sorted(ended, key=lambda job: job.submitted)]


def test_the_late_oracle_counts_its_own_jobs_until_it_looks_again() -> None:
    sites = [GridSite("fast", 1, speed=2.0, bandwidth=1.0), GridSite("slow", 1, speed=1.0, bandwidth=1.0)]
    ended: list[GridJob] = []
    grid, choose = Grid(sites, ended.append), LateOracle()
    grid.run(
        [GridJob(at, 1000.0) for at in (0.0, 1.0, 2.0, 3.0, 2 * AD_SECONDS)], lambda job: choose(grid, job)
    )
    assert [job.site for job in sorted(ended, key=lambda job: job.submitted)] == [0, 0, 1, 0, 0]


def test_own_jobs_take_free_slots_first() -> None:
    element = ComputingElement(site="a", ce="ce", slots=4, max_cpu_time=100)
    told = Candidate(element=element, slots=4, free_slots=2, waiting_jobs=1)
    found = loaded(told, 3)
    assert (found.free_slots, found.waiting_jobs) == (0, 2)


def test_a_goal_is_missed_with_or_without_the_oracle() -> None:
    times = {OURS: 80.0, "oracle": 70.0, "late oracle": 74.0, "random": 200.0, "shortest queue": 100.0}
    assert goal(times, "random") == "reached"
    assert goal(times, "shortest queue") == "missed"
    assert goal({**times, "late oracle": 76.0}, "shortest queue") == "missed, by the late oracle too"
    assert goal({**times, "oracle": 79.0}, "shortest queue") == "missed, by the oracle too"


def test_a_broker_slower_than_a_baseline_is_invalid() -> None:
    ratio = {"random": 0.3, "shortest queue": 1.1, "shortest queue, own jobs counted": 0.9}
    with pytest.raises(InvalidError, match="shortest queue"):
        check({"ratio": ratio, "parts": {"delivery": {"covered": 0.9}}})
    with pytest.raises(InvalidError, match="intervals"):
        check({"ratio": dict.fromkeys(ratio, 0.5), "parts": {"delivery": {"covered": 0.7}}})
