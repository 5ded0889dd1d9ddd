"""How many zero-second jobs go through the whole system in a second: submitted, matched, run as processes, done.

python -m bench.end_to_end [--jobs N] [--slots N] [--runs N] [--peer hyperqueue] [--json]

All are submitted as one array; a peer, if named, runs as many as one job of so many tasks.
"""

import contextlib
import time
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import psutil

from bench.measuring import Cpu, Figures, machine, median, postgres_version, run, system
from bench.peers.hyperqueue import peer as hyperqueue
from bench.validity import InvalidError
from wms.client import Client, JobDescription, Submission
from wms.db import timeline
from wms.db.database import Database
from wms.embedded.system import System
from wms.replay.figures import quantile


async def measure(jobs: int, slots: int, runs: int, peer: str) -> Figures:
    if peer not in ("", "hyperqueue"):
        raise SystemExit(f"no peer is called {peer}; known: hyperqueue")
    figures = await ours(jobs, slots, runs)
    if peer:
        theirs = await hyperqueue.measure(jobs, slots, runs)
        figures[peer] = theirs
        # How many times as many as ours: 1 would be as fast.
        figures["peer_times_faster"] = round(theirs["jobs_per_second"] / figures["jobs_per_second"], 2)
        figures["peer_times_less_cpu"] = round(figures["cpu_ms_a_job"] / theirs["cpu_ms_a_job"], 2)
    return figures


async def ours(jobs: int, slots: int, runs: int) -> Figures:
    async with system(slots=slots) as running:
        about = machine(await postgres_version(running))
        async with Client.connect(running.layout.root) as client:
            await once(running, client, jobs)  # the pilots are there from now on
            cpu, pilots = Cpu(running), Pilots(running)
            found = [await once(running, client, jobs) for _ in range(runs)]
            used = cpu.used() | pilots.used()
    milliseconds = {name: round(1e3 * seconds / (jobs * runs), 2) for name, seconds in used.items()}
    return {
        "machine": about,
        "jobs_per_second": median([jobs / each.seconds for each in found]),
        "steady_jobs_per_second": median([each.steady_rate for each in found]),
        "first_offer_ms": median([1e3 * each.first_offer for each in found]),
        "all_seconds": [round(each.seconds, 2) for each in found],
        "cpu_ms_a_job": round(sum(milliseconds.values()), 2),
        "cpu_ms_a_job_by_process": milliseconds,
    }


class Pilots:
    """Processor seconds of agents, of their shepherds and of payloads, between two moments."""

    def __init__(self, running: System) -> None:
        pid = running.supervisor.pid_of("pilot_submitter")
        assert pid is not None
        self._root = psutil.Process(pid)
        self._before = self._look()

    def used(self) -> Figures:
        return {name: seconds - self._before.get(name, 0.0) for name, seconds in self._look().items()}

    def _look(self) -> dict[str, float]:
        found = {"agents": 0.0, "shepherds": 0.0, "payloads": 0.0}
        for process in self._root.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                if any(word.endswith("shepherd.py") for word in process.cmdline()):
                    found["shepherds"] += times.user + times.system
                    found["payloads"] += times.children_user + times.children_system
                elif any(word.endswith("config.toml") for word in process.cmdline()):
                    found["agents"] += times.user + times.system
        return found


class Once(NamedTuple):
    """One run."""

    seconds: float
    steady_rate: float
    """Jobs a second from the tenth hundredth to the ninetieth."""
    first_offer: float
    """Seconds from the submission to the first offer, by the database's clock."""


async def once(running: System, client: Client, jobs: int) -> Once:
    """Run jobs until all are done."""
    began = time.perf_counter()
    submitted = await client.submit(JobDescription(executable="true", cpu_time=60, array=jobs))
    counts = await client.wait(submitted.selector(), timeout=300)
    passed = time.perf_counter() - began
    if counts != {"Done": jobs}:
        raise InvalidError(f"not all {jobs} jobs are done: {counts}")
    times = await times_of(running, submitted)
    came = min(each.submitted_at for each in times)
    ends = sorted(_after(came, [each.ended_at for each in times]))
    early, late = quantile(ends, 0.1), quantile(ends, 0.9)
    first = min(_after(came, [each.offered_at for each in times]))
    return Once(passed, 0.8 * jobs / max(0.001, late - early), first)


def _after(came: datetime, times: Iterable[datetime | None]) -> list[float]:
    return [(each - came).total_seconds() for each in times if each is not None]


async def times_of(running: System, submitted: Submission) -> list[timeline.JobTimes]:
    """Return the times of the jobs, by the database's clock."""
    assert running.facts is not None
    db = await Database.connect(running.facts.postgres_url, size=1, application="bench")
    try:
        async with db.transaction() as tx:
            return await timeline.of_ranges(tx, submitted.ids)
    finally:
        await db.close()


if __name__ == "__main__":
    run("end_to_end", measure, jobs=1_000, slots=8, runs=3, peer="")
