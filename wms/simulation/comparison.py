"""Compares scenarios over the same jobs and seeds, and says which differences chance may explain.

Each scenario is simulated once for each seed. The n-th simulations of all scenarios have the same jobs and the same random numbers, so they
are compared in pairs. A difference from the first scenario is *within noise* if the 95 % interval of Student's t about the mean of the
paired differences contains 0. The noise comes from the draws and from the attempts that sites lose. It says nothing about other workloads.
"""

from collections.abc import Callable, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from wms.simulation.figures import Figures, figures
from wms.simulation.scenario import Scenario
from wms.simulation.simulation import Simulation
from wms.simulation.workload import Workload

Verdict = Literal["", "same", "noise", "differs", "unknown"]

_T_95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045,
)  # fmt: skip
"""The two-sided 95 % quantiles of Student's t for 1 to 29 degrees of freedom."""

METRICS: dict[str, Callable[[Figures], float]] = {
    "wait_mean": lambda f: f.waits.mean if f.waits else 0.0,
    "wait_p50": lambda f: f.waits.p50 if f.waits else 0.0,
    "wait_p90": lambda f: f.waits.p90 if f.waits else 0.0,
    "wait_p99": lambda f: f.waits.p99 if f.waits else 0.0,
    "jobs_per_hour": lambda f: f.jobs_per_hour,
    "makespan": lambda f: f.makespan,
    "used": lambda f: f.used,
    "jain": lambda f: f.jain,
    "deviation": lambda f: f.deviation,
    "done": lambda f: f.done,
    "failed": lambda f: f.failed,
    "never": lambda f: f.never,
    "left": lambda f: f.left,
    "attempts": lambda f: f.attempts,
    "pilots": lambda f: f.pilots,
}
"""The compared figures by name, each with the function that reads it from the figures of a simulation. Waits and makespan are in seconds."""


class ComparedFigure(Struct, frozen=True, kw_only=True):
    """One figure of a scenario: its mean over the seeds, and whether it differs from the first scenario's by more than chance."""

    mean: float
    spread: float | None = None
    """The standard deviation of the figure over the seeds; None with one seed."""
    verdict: Verdict = ""


class ScenarioResult(Struct, frozen=True, kw_only=True):
    """The compared figures of one scenario, and all figures of its simulation with the first seed."""

    name: str
    values: dict[str, ComparedFigure]
    first: Figures


def compare(
    workload: Workload,
    scenarios: Sequence[Scenario],
    *,
    seeds: int = 1,
    tell: Callable[[int], None] = lambda _: None,
) -> list[ScenarioResult]:
    """Simulate the workload under all scenarios, with `seeds` seeds each, and compare the figures of each scenario with those of the first.

    `tell` is called from time to time with the number of jobs that have arrived so far in all simulations.
    """
    played: list[list[Figures]] = []
    jobs = len(workload.arrivals)
    for number, scenario in enumerate(scenarios):
        before = number * seeds * jobs
        played.append([_play(workload, scenario, seed, before, tell) for seed in range(seeds)])
    return [
        ScenarioResult(name=scenario.name, values=_values(found, played[0]), first=found[0])
        for scenario, found in zip(scenarios, played, strict=True)
    ]


def _play(
    workload: Workload, scenario: Scenario, seed: int, before: int, tell: Callable[[int], None]
) -> Figures:
    seeded = replace(scenario, seed=scenario.seed + seed)
    before += seed * len(workload.arrivals)
    return figures(Simulation(workload, seeded).run(lambda jobs: tell(before + jobs)), seeded)


def _values(found: Sequence[Figures], first: Sequence[Figures]) -> dict[str, ComparedFigure]:
    values = {}
    for name, of in METRICS.items():
        mine = [of(each) for each in found]
        verdict = "" if found is first else judge([of(each) for each in first], mine)
        spread = stdev(mine) if len(mine) > 1 else None
        values[name] = ComparedFigure(mean=fmean(mine), spread=spread, verdict=verdict)
    return values


def judge(first: Sequence[float], other: Sequence[float]) -> Verdict:
    """Return "noise" if chance may explain the differences between `first` and `other`, and "differs" if not. Their n-th values are a pair.

    Return "same" if all differences are 0, and "unknown" if there is one pair.
    """
    apart = [b - a for a, b in zip(first, other, strict=True)]
    if not any(apart):
        return "same"
    if len(apart) < 2:
        return "unknown"
    degrees = len(apart) - 1
    margin = (_T_95[degrees - 1] if degrees <= len(_T_95) else 1.96) * stdev(apart) / sqrt(len(apart))
    return "noise" if abs(fmean(apart)) <= margin else "differs"
