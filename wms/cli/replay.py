"""`wms replay`: the jobs of a real system's trace, submitted as they came there but faster, and what became of them."""

import asyncio
import contextlib
import gzip
import sys
import tempfile
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from cyclopts import Parameter

from wms.cli.options import USUAL, Common, Flag
from wms.cli.session import OK, SOME_FAILED, quiet, run_async

if TYPE_CHECKING:
    from wms.cli.swf import Trace
    from wms.cli.trace_plan import TracePlan
    from wms.cli.trace_report import TraceFigures
    from wms.cli.trace_run import Feeding
    from wms.client import Client, ClientSettings

Read = TypeVar("Read")

JOBS_LIMIT = 1_000_000
LOOK_SECONDS = 0.5
PATIENCE_SECONDS = 300.0
"""Without any job ending, while none is running."""
SHOWN_SITES = 20
FRESH_PILOTS = {"most": 16, "idle_seconds": 5.0, "local_sites": ["*"]}
"""Of a system of its own: its sites are many and take turns, so pilots do not linger. All of them are this machine."""


def replay(
    trace: Annotated[Path, Parameter(help="a file in Standard Workload Format, gzipped if it ends in .gz")],
    /,
    *,
    jobs: int = 1_000,
    speedup: float = 1_000.0,
    sites_limit: int | None = None,
    slots: int = 8,
    fresh: Flag = False,
    common: Common = USUAL,
) -> int:
    """Replay a trace: submit its jobs as they came, only faster, and report what each VO and site saw.

    Users and groups of the trace become owners and VOs, partitions become sites that are advertised while the replay runs. Each job sleeps for its run time divided by the speed-up. Needs the keys of the local issuer. In a system that is up already, the pilot submitter's `local_sites` must name these sites.

    Examples:
      wms replay LCG-2005-1.swf.gz --jobs 2000 --speedup 2000 --fresh
      wms replay trace.swf --jobs 100 --sites-limit 5 --json

    Parameters
    ----------
    jobs
        How many jobs, the first by time of submission.
    speedup
        What run times and times between submissions are divided by.
    sites_limit
        How many sites at most, the busiest ones; the jobs of all others are dealt out over these.
    slots
        How many jobs a pilot of such a site runs at once.
    fresh
        Not on the running system but on one of its own, started for it and stopped after it, and audited.
    """
    from wms.cli import trace_plan
    from wms.cli.own_system import WentWrong
    from wms.cli.printing import note

    _check(jobs, speedup, sites_limit, slots)
    plan = trace_plan.plan(read_trace(trace, jobs), speedup=speedup, slots=slots, sites_limit=sites_limit)
    vos = len({job.identity.vo for job in plan.jobs})
    note(
        f"{len(plan.jobs):,} jobs submitted over {plan.jobs[-1].due:,.0f} s, which run "
        f"{sum(job.seconds for job in plan.jobs):,.0f} s together; {len(plan.elements)} sites, {vos} VOs"
    )
    try:
        found = run_async(_replay(plan, common, fresh=fresh))
    except WentWrong as wrong:
        sys.stderr.write("".join(f"wms: {line}\n" for line in wrong.findings))
        return SOME_FAILED
    _show(found, as_json=common.json)
    return SOME_FAILED if found["wrong"] else OK


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


def read_trace(path: Path, most: int) -> "Trace":
    """Return the first jobs of a trace file. Raises Rejected, naming the line, for what is none."""
    from wms.cli import swf

    return read_lines(path, swf.LINE_LIMIT, lambda lines: swf.read(lines, most))


def read_lines(path: Path, limit: int, read: Callable[[Iterable[str]], Read]) -> Read:
    """Return what is read from the lines of a file; what is longer than the limit comes in parts longer by one."""
    from wms.errors import Rejected

    def lines() -> Iterable[str]:
        opened: Any = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8", errors="replace") as file:
            while line := file.readline(limit + 1):
                yield line

    try:
        return read(lines())
    except (OSError, EOFError, zlib.error) as error:
        raise Rejected(
            "NO_TRACE", f"cannot read {path}: {error}", "name a trace in SWF, or one gzipped"
        ) from None


async def _replay(plan: "TracePlan", common: Common, *, fresh: bool) -> dict[str, Any]:
    quiet()
    async with _settings(common, fresh=fresh) as settings:
        found = await _run(settings, plan)
        return {**found, "audit": await _audited(settings) if fresh else None}


@contextlib.asynccontextmanager
async def _settings(common: Common, *, fresh: bool) -> "AsyncIterator[ClientSettings]":
    from wms.cli.own_system import own_system
    from wms.cli.printing import note
    from wms.client import read_settings

    if not fresh:
        yield read_settings(common.data, token=common.token)
        return
    note("starting Postgres, a broker and the services ...")
    async with own_system(common.data, pilots=FRESH_PILOTS, log_level="warning") as system:
        yield read_settings(system.layout.root, {})


async def _run(settings: "ClientSettings", plan: "TracePlan") -> dict[str, Any]:
    from wms.cli.progress import ProgressBoard
    from wms.cli.trace_report import report
    from wms.cli.trace_run import Feeding, Keys, Owners, advertised
    from wms.runtime import clock

    keys = Keys(settings)
    began_at = clock.now()
    with tempfile.TemporaryDirectory(prefix="wms-replay-") as tokens, ProgressBoard() as board:
        owners = Owners(settings, keys, Path(tokens))
        feeding = Feeding(plan, owners)
        try:
            async with owners.operator() as operator, advertised(settings, keys, plan):
                await _feed_and_watch(feeding, operator, board.task("replay", len(plan.jobs)).counts)
        finally:
            await owners.close()
    return await report(settings, feeding, began_at)


async def _feed_and_watch(feeding: "Feeding", operator: "Client", tell: Any) -> None:
    """Submit and watch until all jobs have ended; what is left when it cannot go on is killed."""
    feeder = asyncio.create_task(feeding.run())
    try:
        await _watch(feeding, operator, feeder, tell)
    except BaseException:
        feeder.cancel()
        await asyncio.wait([feeder])
        with contextlib.suppress(Exception):
            async with asyncio.timeout(10):
                await _kill(operator, feeding)
        raise


async def _watch(feeding: "Feeding", operator: "Client", feeder: "asyncio.Task[None]", tell: Any) -> None:
    from wms.cli.own_system import WentWrong
    from wms.client import ENDED

    loop = asyncio.get_running_loop()
    before, changed_at = 0, loop.time()
    while True:
        over = feeder.done()
        if over:
            feeder.result()
        counts = await _counts(operator, list(feeding.submitted))
        tell(counts)
        ended = sum(count for state, count in counts.items() if state in ENDED)
        if over and ended == len(feeding.submitted):
            return
        if ended != before or counts.get("Running", 0):
            before, changed_at = ended, loop.time()
        elif loop.time() - changed_at > PATIENCE_SECONDS:
            raise WentWrong(f"no job ended in {PATIENCE_SECONDS:g} s, and none runs: {counts}")
        await asyncio.sleep(LOOK_SECONDS)


async def _counts(operator: "Client", job_ids: Sequence[int]) -> dict[str, int]:
    total: dict[str, int] = {}
    for selector in _selectors(job_ids):
        for state, count in (await operator.counts(selector)).items():
            total[state] = total.get(state, 0) + count
    return total


async def _kill(operator: "Client", feeding: "Feeding") -> None:
    for selector in _selectors(list(feeding.submitted)):
        await operator.kill(selector, "the replay was stopped")


def _selectors(job_ids: Sequence[int]) -> "Iterable[Any]":
    from wms.client.selector import RANGES_LIMIT
    from wms.ids import joined
    from wms.messages.commands import Selector

    ranges = joined((job_id, job_id) for job_id in job_ids)
    for start in range(0, len(ranges), RANGES_LIMIT):
        yield Selector(ids=ranges[start : start + RANGES_LIMIT])


async def _audited(settings: "ClientSettings") -> str:
    from wms.audit import audit
    from wms.cli.own_system import WentWrong

    assert settings.postgres is not None
    lines = (report := await audit(settings.postgres.url)).text().splitlines()
    if not report.ok:
        raise WentWrong("the audit failed", *lines)
    return lines[-1]


def _show(report: dict[str, Any], *, as_json: bool) -> None:
    from wms.cli.printing import note, show, show_json

    if as_json:
        show_json(report)
        return
    _show_lines("VO", report["vos"])
    sites = report["sites"]
    _show_lines("SITE", sites[:SHOWN_SITES])
    if len(sites) > SHOWN_SITES:
        show(
            f"and {len(sites) - SHOWN_SITES} sites more, with {sum(line.jobs for line in sites[SHOWN_SITES:])} jobs; --json has all"
        )
    wait = report["wait_seconds"]
    show(
        f"{report['done']} of {report['jobs']} jobs done in {report['seconds']:.1f} s, {report['attempts']} attempts, "
        f"{report['pilots_used']} of {report['pilots_sent']} pilots used, {report['matches_per_second']:g} matches/s"
    )
    if wait is not None:
        show(f"wait: median {wait.median:.1f} s, 95 % {wait.p95:.1f} s, longest {wait.longest:.1f} s")
    if report["audit"]:
        show(f"audit: {report['audit']}")
    for line in report["wrong"][:20]:
        note(f"wms: {line}")
    if report["wrong"]:
        note(f"wms: {len(report['wrong'])} jobs did not end as they should have")


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
