"""Scenarios held against the first of them."""

from tests.unit.simulation.workloads import job, site
from wms.simulation.comparison import compare, judge
from wms.simulation.scenario import Scenario
from wms.simulation.workload import Workload, by_time


def test_what_is_noise():
    assert judge([1, 2, 3], [1, 2, 3]) == "same"
    assert judge([1], [2]) == "unknown"
    assert judge([1.0, 2.0, 3.0], [2.0, 1.0, 3.1]) == "noise"
    assert judge([1.0, 2.0, 3.0], [11.0, 12.1, 13.0]) == "differs"


def test_scenarios_are_held_against_the_first():
    jobs = [job(n, 300, owner="ab"[n % 2]) for n in range(0, 400, 4)]
    one = Scenario(name="one", sites=(site(slots=4),))
    more = Scenario(name="more", sites=(site(slots=40),))
    first, same, better = compare(
        Workload(by_time(jobs)), [one, Scenario(name="too", sites=(site(slots=4),)), more], seeds=3
    )
    assert first.values["wait_mean"].verdict == ""
    assert {each.verdict for each in same.values.values()} == {"same"}
    assert better.values["wait_mean"].verdict == "differs"
    assert better.values["wait_mean"].mean < first.values["wait_mean"].mean
