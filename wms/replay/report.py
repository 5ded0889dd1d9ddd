"""The report on a replay: figures of all jobs, of each VO and of each site, and the jobs that did not end as planned."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from wms.client import ClientSettings, Rejected
from wms.db import timeline
from wms.db.database import Database
from wms.db.timeline import JobTimes
from wms.ids import joined
from wms.replay.figures import StartDelays, matches_per_second, waits
from wms.replay.plan import Planned


class TraceFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of the jobs of one VO, or at one site. Times are in seconds after the first submission of the replay."""

    name: str
    jobs: int
    started: int
    done: int
    attempts: int
    wait: StartDelays | None
    first_start: float | None
    last_start: float | None
    first_end: float | None
    last_end: float | None


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a whole replay, and the jobs that did not end as planned."""

    jobs: int
    done: int
    attempts: int
    wait_seconds: StartDelays | None
    matches_per_second: float
    pilots_sent: int
    pilots_used: int
    behind_the_trace_seconds: float
    """The largest delay, in seconds, of a submission after the time at which it was due."""
    seconds: float
    """How many seconds passed from the first submission to the last end of a job."""
    vos: list[TraceFigures]
    sites: list[TraceFigures]
    wrong: list[str]
    """A sentence for each job that did not end as planned."""
    audit: str | None = None
    """What an audit of the system found, in words; None if there was none."""


async def report(
    settings: ClientSettings, submitted: Mapping[int, Planned], longest_lag: float, began_at: datetime
) -> ReplayReport:
    """Measure the submitted jobs of a replay, given by id, in the database.

    `longest_lag` is the greatest delay of a submission in seconds, and `began_at` when the replay began. Raise Rejected if the settings
    name no database.
    """
    if settings.postgres is None:
        raise Rejected("NOT_AN_OPERATOR", "the report needs the database, which the settings do not name")
    db = await Database.connect(settings.postgres.url, size=1, application="wms replay")
    try:
        async with db.transaction() as tx:
            jobs = await timeline.of_ranges(tx, joined((each, each) for each in submitted))
            sent, used = await timeline.pilots_since(tx, began_at)
    finally:
        await db.close()
    wrong = [line for job in jobs if (line := _fault(job, submitted[job.job_id]))]
    if len(jobs) != len(submitted):
        wrong.append(f"{len(submitted) - len(jobs)} jobs are gone")
    start = min(job.submitted_at for job in jobs)
    return ReplayReport(
        jobs=len(jobs),
        done=sum(job.state == "Done" for job in jobs),
        attempts=sum(job.attempts for job in jobs),
        wait_seconds=waits(jobs),
        matches_per_second=matches_per_second(jobs),
        pilots_sent=sent,
        pilots_used=used,
        behind_the_trace_seconds=round(longest_lag, 2),
        seconds=max((_after(start, job.ended_at) or 0.0 for job in jobs), default=0.0),
        vos=_lines(jobs, {job.job_id: job.vo for job in jobs}, start),
        sites=_lines(jobs, {job.job_id: job.site or "" for job in jobs}, start),
        wrong=wrong,
    )


def _fault(job: JobTimes, planned: Planned) -> str:
    """Return a sentence on how the end of a job differs from the plan; empty if it does not."""
    if job.state != "Done" or job.exit_code != 0:
        return f"job {job.job_id} ({job.name}) is {job.state}, exit code {job.exit_code}: {job.reason} {job.reason_text or ''}"
    if (planned.site and job.site != planned.site) or job.vo != planned.identity.vo:
        return f"job {job.job_id} ran at {job.site} for {job.vo}, not at {planned.site} for {planned.identity.vo}"
    return ""


def _lines(jobs: Sequence[JobTimes], names: dict[int, str], start: datetime) -> list[TraceFigures]:
    groups: dict[str, list[JobTimes]] = {}
    for job in jobs:
        groups.setdefault(names[job.job_id], []).append(job)
    lines = [_line(name, group, start) for name, group in groups.items()]
    return sorted(lines, key=lambda line: (-line.jobs, line.name))


def _line(name: str, jobs: Sequence[JobTimes], start: datetime) -> TraceFigures:
    starts = sorted(after for job in jobs if (after := _after(start, job.started_at)) is not None)
    ends = sorted(after for job in jobs if (after := _after(start, job.ended_at)) is not None)
    return TraceFigures(
        name=name,
        jobs=len(jobs),
        started=len(starts),
        done=sum(job.state == "Done" for job in jobs),
        attempts=sum(job.attempts for job in jobs),
        wait=waits(jobs),
        first_start=starts[0] if starts else None,
        last_start=starts[-1] if starts else None,
        first_end=ends[0] if ends else None,
        last_end=ends[-1] if ends else None,
    )


def _after(start: datetime, then: datetime | None) -> float | None:
    return None if then is None else round((then - start).total_seconds(), 3)
