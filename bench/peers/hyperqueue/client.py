"""Runs under HyperQueue's interpreter: `client.py JOBS SLOTS RUNS`, in a directory of its own; prints one JSON object.

A server and one worker of SLOTS cores, both threads of this process, run JOBS times `true` as one job of so many tasks,
with its outputs in files, as is its default. It keeps no journal: nothing of it is durable.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
from hyperqueue.ffi import get_version

LOOK_SECONDS = 0.002
QUIET_SECONDS = 0.5


def main(jobs: int, slots: int, runs: int) -> None:
    place = str(Path.cwd())
    with LocalCluster(f"{place}/server", WorkerConfig(cores=slots)) as cluster:
        client = cluster.client()
        once(client, place, slots)  # the worker is there from now on
        before = cpu_seconds()
        seconds = [once(client, place, jobs) for _ in range(runs)]
        used = cpu_seconds() - before
    print(json.dumps({"version": get_version(), "seconds": seconds, "cpu_seconds": used}), flush=True)
    os._exit(0)  # a server that is told to stop takes its time


def once(client, place: str, jobs: int) -> float:
    """Run jobs; return the seconds from their submission until the last was reaped."""
    job = Job(default_workdir=place)
    for _ in range(jobs):
        job.program(["true"])
    began = time.perf_counter()
    submitted = client.submit(job)
    ended = quiet_since()
    asked = time.perf_counter()
    failed = client.connection.wait_for_jobs((submitted.id,), lambda _: None)
    assert not failed, failed
    # It looks once a second whether all is done, and lets nothing else run meanwhile: only if it had to wait it counts.
    waited = time.perf_counter() - asked
    return (time.perf_counter() if waited > 1.0 else ended) - began


def quiet_since() -> float:
    """Wait until no payload has ended for a while; return when the last did."""
    last, seen = time.perf_counter(), -1
    while time.perf_counter() - last < QUIET_SECONDS:
        found = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
        if found != seen:
            last, seen = time.perf_counter(), found
        time.sleep(LOOK_SECONDS)
    return last


def cpu_seconds() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
