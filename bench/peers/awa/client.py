"""Runs under awa's interpreter: `client.py JOBS WORKERS CONNECTIONS`, and the URL of a Postgres as the first line of its input.

Each further line is a round: JOBS jobs that do nothing are put into its queue, and then workers take them, WORKERS at once.
It prints "ready", and after a round one JSON object: the seconds from the first job's begin to the last one's end.
"""

import asyncio
import json
import os
import sys
import time
from dataclasses import dataclass

import awa

QUEUE = "bench"
CHUNK = 5_000
"""Jobs in one insertion."""
POLL_MS = 50
CLAIMERS = 4
"""Of 1 and 4 claimers, and of polls every 20, 50 and 200 ms, these were the fastest."""
LOOK_SECONDS = 0.01


@dataclass
class Nothing:
    """A job that does nothing."""

    number: int


async def main(jobs: int, workers: int, connections: int) -> None:
    url = sys.stdin.readline().strip()
    client = awa.AsyncClient(url)
    await client.migrate()
    await client.install_queue_storage()
    print("ready", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        for first in range(0, jobs, CHUNK):
            some = [Nothing(number) for number in range(first, min(first + CHUNK, jobs))]
            await client.enqueue_many_copy(some, queue=QUEUE)
        seconds = await lives(awa.AsyncClient(url, max_connections=connections), jobs, workers)
        print(json.dumps({"seconds": seconds}), flush=True)
    os._exit(0)  # its threads would go on


async def lives(working: awa.AsyncClient, jobs: int, workers: int) -> float:
    """Let workers run all jobs; return the seconds that took. That all are recorded as done is waited for, and not counted."""
    begun: list[float] = []
    over = asyncio.Event()

    @working.task(Nothing, queue=QUEUE)
    async def nothing(_):
        begun.append(time.perf_counter())
        if len(begun) == jobs:
            over.set()

    queue = {"name": QUEUE, "max_workers": workers, "claimers": CLAIMERS}
    await working.start([queue], poll_interval_ms=POLL_MS)
    await over.wait()
    seconds = begun[-1] - begun[0]
    while (await working.health_check()).queues[QUEUE].in_flight:  # noqa: ASYNC110 - it tells nobody when
        await asyncio.sleep(LOOK_SECONDS)
    await working.shutdown()
    await working.close()
    assert len(begun) == jobs, f"{len(begun)} of {jobs} jobs were run"
    return seconds


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
