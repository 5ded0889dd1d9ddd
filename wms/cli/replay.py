"""`wms replay`: submits the jobs of a real system's trace at the times in the trace, sped up, and prints a report."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from wms.cli.options import USUAL, CommonOptions, Flag
from wms.cli.session import OK, SOME_FAILED, quiet

if TYPE_CHECKING:
    from wms.client import ClientSettings
    from wms.replay.plan import TracePlan
    from wms.replay.report import ReplayReport, TraceFigures

JOBS_LIMIT = 1_000_000
SHOWN_SITES = 20
FRESH_PILOTS = {"most": 16, "idle_seconds": 5.0, "local_sites": ["*"]}
"""The pilot submitter's settings with --fresh. Idle pilots end soon, since the many sites of a trace share this machine."""


def replay(
    trace: Annotated[Path, Parameter(help="a file in Standard Workload Format, gzipped if it ends in .gz")],
    /,
    *,
    jobs: int = 1_000,
    speedup: float = 1_000.0,
    sites_limit: int | None = None,
    slots: int = 8,
    fresh: Flag = False,
    common: CommonOptions = USUAL,
) -> int:
    """Replay a trace: submit its jobs at their times, only faster, and report figures of each VO and site.

    Users and groups of the trace become owners and VOs. Partitions become sites, which are advertised while the replay runs. Each job sleeps for its run time divided by the speed-up. The command needs the keys of the local issuer. In a running system, the pilot submitter's `local_sites` must name these sites.

    Examples:
      wms replay LCG-2005-1.swf.gz --jobs 2000 --speedup 2000 --fresh
      wms replay trace.swf --jobs 100 --sites-limit 5 --json

    Parameters
    ----------
    jobs
        The number of jobs to replay, the first by time of submission.
    speedup
        The number by which run times and times between submissions are divided.
    sites_limit
        How many sites to have at most. The sites with the most jobs are kept, and the jobs of all others go to them.
    slots
        The number of jobs that a pilot of these sites runs at once.
    fresh
        Replay on a system that is started for it, audited, and stopped, in place of the running one.
    """
    from wms.cli.own_run import run_or_tell
    from wms.cli.printing import note
    from wms.replay.plan import plan_of
    from wms.replay.trace_file import read_trace

    _check(jobs, speedup, sites_limit, slots)
    plan = plan_of(read_trace(trace, jobs), speedup=speedup, slots=slots, sites_limit=sites_limit)
    vos = len({job.identity.vo for job in plan.jobs})
    note(
        f"{len(plan.jobs):,} jobs submitted over {plan.jobs[-1].due:,.0f} s, which run "
        f"{sum(job.seconds for job in plan.jobs):,.0f} s together; {len(plan.elements)} sites, {vos} VOs"
    )
    report = run_or_tell(_replayed(plan, common, fresh=fresh))
    if report is None:
        return SOME_FAILED
    _show(report, as_json=common.json)
    return SOME_FAILED if report.wrong else OK


def _check(jobs: int, speedup: float, sites_limit: int | None, slots: int) -> None:
    from wms.errors import Rejected

    for name, value, most in (
        ("jobs", jobs, JOBS_LIMIT),
        ("slots", slots, 1_024),
        ("sites-limit", sites_limit or 1, 10_000),
    ):
        if not 1 <= value <= most:
            raise Rejected("BAD_OPTION", f"--{name} must be 1 to {most:,}, not {value}")
    if not 1e-3 <= speedup <= 1e9:
        raise Rejected("BAD_OPTION", f"--speedup must be 0.001 to 1e9, not {speedup}")


async def _replayed(plan: "TracePlan", common: CommonOptions, *, fresh: bool) -> "ReplayReport":
    from msgspec.structs import replace

    from wms.cli.own_run import audited
    from wms.cli.progress import ProgressBoard
    from wms.replay.run import replay as run

    quiet()
    async with _settings(common, fresh=fresh) as settings:
        with ProgressBoard() as board:
            report = await run(settings, plan, board.task("replay", len(plan.jobs)).counts)
        if not fresh:
            return report
        assert settings.postgres is not None
        return replace(report, audit=await audited(settings.postgres.url))


@contextlib.asynccontextmanager
async def _settings(common: CommonOptions, *, fresh: bool) -> "AsyncIterator[ClientSettings]":
    from wms.cli.printing import note
    from wms.client import read_settings
    from wms.embedded.own_system import own_system

    if not fresh:
        yield read_settings(common.data, token=common.token)
        return
    note("starting Postgres, a broker and the services ...")
    async with own_system(common.data, note, pilots=FRESH_PILOTS, log_level="warning") as system:
        yield read_settings(system.layout.root, {})


def _show(report: "ReplayReport", *, as_json: bool) -> None:
    from wms.cli.printing import note, show, show_json

    if as_json:
        show_json(report)
        return
    _show_lines("VO", report.vos)
    _show_lines("SITE", report.sites[:SHOWN_SITES])
    if more := report.sites[SHOWN_SITES:]:
        show(f"and {len(more)} sites more, with {sum(line.jobs for line in more)} jobs; --json has all")
    show(
        f"{report.done} of {report.jobs} jobs done in {report.seconds:.1f} s, {report.attempts} attempts, "
        f"{report.pilots_used} of {report.pilots_sent} pilots used, {report.matches_per_second:g} matches/s"
    )
    if wait := report.wait_seconds:
        show(f"wait: median {wait.median:.1f} s, 95 % {wait.p95:.1f} s, longest {wait.longest:.1f} s")
    if report.audit:
        show(f"audit: {report.audit}")
    for line in report.wrong[:20]:
        note(f"wms: {line}")
    if report.wrong:
        note(f"wms: {len(report.wrong)} jobs did not end as they should have")


def _show_lines(what: str, lines: "Sequence[TraceFigures]") -> None:
    from wms.cli.printing import show_table

    columns = (
        what,
        "JOBS>",
        "STARTED>",
        "DONE>",
        "WAIT>",
        "WAIT 95%>",
        "FIRST START>",
        "LAST START>",
        "LAST END>",
    )
    show_table(columns, [_cells(line) for line in lines])


def _cells(line: "TraceFigures") -> tuple[str, ...]:
    median, p95 = (line.wait.median, line.wait.p95) if line.wait else (None, None)
    figures = (median, p95, line.first_start, line.last_start, line.last_end)
    return (
        line.name,
        str(line.jobs),
        str(line.started),
        str(line.done),
        *("-" if each is None else f"{each:.1f} s" for each in figures),
    )
