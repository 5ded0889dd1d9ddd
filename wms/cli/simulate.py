"""`wms simulate`: simulates a trace or a recording under other conditions, by the decision functions of the real system."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from wms.cli.options import USUAL, CommonOptions
from wms.cli.session import OK

if TYPE_CHECKING:
    from wms.simulation.comparison import ScenarioResult
    from wms.simulation.scenario import Scenario
    from wms.simulation.workload import Workload

JOBS_LIMIT = 10_000_000
SEEDS_LIMIT = 1_000


def simulate(
    trace: Annotated[
        Path,
        Parameter(
            help="a trace in Standard Workload Format, or a recording (.jsonl); gzipped if it ends in .gz"
        ),
    ],
    /,
    *,
    scenario: Annotated[list[Path] | None, Parameter(negative=())] = None,
    jobs: int | None = None,
    seeds: int = 1,
    common: CommonOptions = USUAL,
) -> int:
    """Simulate a trace or a recording under other limits, shares or sites, and compare.

    The simulation has a virtual clock and uses the functions by which matchers draw jobs and pilots are planned; it needs no server. A field that a scenario does not have is as in the built-in scenario, which the word default names. Times are those of the trace. All scenarios are compared with the first. The same seed gives the same result.

    A scenario is a TOML file:
      placement = "anywhere"        # or "traced": where the trace says that a job ran
      load = 0.5                    # sites are so large that the trace keeps them busy by half
      shares.vo1.group1 = { job_share = 2000 }
      [[sites]]
      site = "cern.ch"
      slots = 500
      [[limits]]
      kind = "running"
      site = "*"
      attribute = "owner"
      value = "*"
      most = 100

    For example:
      wms simulate LCG-2005-1.swf.gz
      wms simulate trace.swf --scenario default --scenario more-slots.toml --seeds 5
      wms simulate november.jsonl --scenario default --scenario half-the-slots.toml
      wms simulate trace.swf --jobs 10000 --scenario a.toml --scenario b.toml --json

    Parameters
    ----------
    scenario
        A scenario: a TOML file, or default. May be repeated.
    jobs
        Simulate only so many jobs, the first by time of submission.
    seeds
        Simulate each scenario with so many seeds, and show which differences are within noise.
    """
    from wms.cli.scenario_file import DEFAULT, read_scenarios
    from wms.cli.simulation_report import show_report
    from wms.replay.workloads import read

    _check(jobs, seeds)
    workload = read(trace, jobs or JOBS_LIMIT)
    scenarios = read_scenarios(scenario or [Path(DEFAULT)], workload)
    show_report(_compared(workload, scenarios, seeds), workload, seeds, as_json=common.json)
    return OK


def _check(jobs: int | None, seeds: int) -> None:
    from wms.errors import Rejected

    for name, value, most in (("jobs", jobs, JOBS_LIMIT), ("seeds", seeds, SEEDS_LIMIT)):
        if value is not None and not 1 <= value <= most:
            raise Rejected("BAD_OPTION", f"--{name} must be 1 to {most:,}, not {value}")


def _compared(workload: "Workload", scenarios: "list[Scenario]", seeds: int) -> "list[ScenarioResult]":
    from wms.cli.progress import ProgressBoard
    from wms.simulation.comparison import compare

    with ProgressBoard() as board:
        bar = board.task("simulate", len(workload.arrivals) * len(scenarios) * seeds)
        return compare(workload, scenarios, seeds=seeds, tell=bar.reach)
