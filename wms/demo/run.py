"""Runs the demonstration: submits its jobs, compares their result with a count made here, and measures the run."""

import asyncio
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

import msgspec

from wms.client import ENDED, Client, Selector, State, Submission
from wms.db import timeline
from wms.db.database import Database
from wms.demo import workload
from wms.demo.phases import Phases
from wms.demo.token_count import Counts
from wms.demo.workload import Unit
from wms.embedded.own_system import RunFailed
from wms.replay.figures import StartDelays, matches_per_second, waits
from wms.runtime import clock

PATIENCE_SECONDS = 600.0
"""The time limit, in seconds, for all jobs of one step. After it the run fails."""
LOOK_SECONDS = 0.25
LOOKS_A_FAULT = 8
"""How many polls of the job counts are made for each search for a failed job."""


class StepProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far one step of the demonstration is, for display to the user."""

    step: str
    total: int
    done: int = 0
    counts: Mapping[str, int] | None = None
    """How many jobs are in each state; None in a step that waits for no jobs."""
    fault: str = ""
    """A sentence on the first job that failed. It is set only once in a step; otherwise it is empty."""


Tell: TypeAlias = Callable[[StepProgress], None]


class DemoFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a demonstration whose result was correct."""

    jobs: int
    attempts: int
    wait_seconds: StartDelays | None
    matches_per_second: float
    pilots_sent: int
    pilots_used: int
    verified: bool = True


async def run(data_dir: Path, postgres_url: str, tell: Tell, phases: Phases) -> DemoFigures:
    """Run the demonstration's jobs on the system in `data_dir`, and return figures. The duration of each phase is stored in `phases`.

    `tell` is called with the progress of each step. Raise RunFailed if a job fails or the result is wrong.
    """
    began_at = clock.now()
    work = workload.units()
    given_up = threading.Event()
    # In a thread while the jobs run, since this process would be idle otherwise.
    computing = asyncio.create_task(asyncio.to_thread(workload.compute, work, given_up.is_set))
    try:
        with tempfile.TemporaryDirectory(prefix="wms-outputs-") as outputs:
            async with Client.connect(data_dir) as client:
                submitted = await _map_and_merge(client, work, Path(outputs), tell, phases)
            with phases.phase("verify"):
                _verify(await computing, Path(outputs) / "merged")
    finally:
        given_up.set()
    return await _figures(postgres_url, submitted, began_at)


async def _map_and_merge(
    client: Client, work: Sequence[Unit], outputs: Path, tell: Tell, phases: Phases
) -> list[Submission]:
    with phases.phase("submit"):
        mapped = await workload.submit(client, work)
    with phases.phase("map"):
        await _ended(client, mapped, "count tokens", tell)
    with phases.phase("fetch"):
        places = await _fetched(client, mapped, outputs, tell)
    with phases.phase("merge"):
        merged = await workload.submit_merge(client, places)
        await _ended(client, merged, "merge", tell)
        await client.output(next(iter(merged.job_ids())), outputs / "merged")
    return [mapped, merged]


async def _fetched(client: Client, mapped: Submission, outputs: Path, tell: Tell) -> dict[int, Path]:
    progress = StepProgress(step="fetch outputs", total=mapped.count)
    tell(progress)

    def one_more() -> None:
        nonlocal progress
        progress = msgspec.structs.replace(progress, done=progress.done + 1)
        tell(progress)

    return await workload.fetch(client, list(mapped.job_ids()), outputs, one_more)


async def _ended(client: Client, submitted: Submission, step: str, tell: Tell) -> None:
    """Wait until all submitted jobs have ended, and report the progress. Raise RunFailed unless all are Done in time."""
    progress = StepProgress(step=step, total=submitted.count)
    tell(progress)
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    fault, looks = "", 0
    while True:
        counts = await client.counts(submitted.selector())
        tell(msgspec.structs.replace(progress, counts=counts))
        if sum(number for state, number in counts.items() if state in ENDED) == submitted.count:
            break
        if asyncio.get_running_loop().time() > deadline:
            raise RunFailed(
                f"{step}: not all jobs ended within {PATIENCE_SECONDS:g} s: {counts}",
                *([fault] if fault else []),
            )
        looks += 1
        if not (fault or looks % LOOKS_A_FAULT) and (fault := await first_failure(client, submitted)):
            tell(msgspec.structs.replace(progress, counts=counts, fault=fault))
        await asyncio.sleep(LOOK_SECONDS)
    if counts != {"Done": submitted.count}:
        raise RunFailed(f"{step}: not all jobs are Done: {counts}", *await _failures(client, submitted))


async def first_failure(client: Client, submitted: Submission) -> str:
    """Return a sentence on the first of these jobs that failed, or that waits again after a failed attempt; empty if there is none."""
    wrong = (State.FAILED, State.HELD, State.KILLED, State.WAITING)
    selector = Selector(ids=submitted.selector().ids, states=wrong)
    async for job in client.jobs(selector):
        if job.state != State.WAITING or job.attempts:
            last = next(
                (each for each in (await client.show(job.job_id)).attempts[::-1] if each.outcome), None
            )
            why = f": {last.reason}: {last.reason_text}" if last else f": {job.reason}"
            return f"job {job.job_id} ({job.name}) is {job.state}{why}"
    return ""


async def _failures(client: Client, submitted: Submission) -> list[str]:
    wrong = [job async for job in client.jobs(submitted.selector()) if job.state != "Done"]
    return [
        f"job {job.job_id} ({job.name}): {(await client.why(job.job_id)).summary}; it printed: "
        f"{(await client.peek(job.job_id, 'stderr', limit=500)).text.strip()}"
        for job in wrong[:5]
    ]


def _verify(right: Counts, merged: Path) -> None:
    if found := workload.differences(workload.read_merged(merged), right):
        raise RunFailed("the jobs' result is not the one computed here", *found)


async def _figures(postgres_url: str, submitted: Sequence[Submission], began_at: datetime) -> DemoFigures:
    db = await Database.connect(postgres_url, size=1, application="wms demo")
    try:
        async with db.transaction() as tx:
            jobs = await timeline.of_ranges(tx, [each for one in submitted for each in one.ids])
            sent, used = await timeline.pilots_since(tx, began_at)
    finally:
        await db.close()
    return DemoFigures(
        jobs=len(jobs),
        attempts=sum(job.attempts for job in jobs),
        wait_seconds=waits(jobs),
        matches_per_second=matches_per_second(jobs),
        pilots_sent=sent,
        pilots_used=used,
    )
