"""One matcher in a process of its own, for benchmarks that run several: `python -m bench.one_matcher` with a Task on stdin.

It loads its index, says "ready", waits for a line, serves its share of the requests, and prints what came of it.
"""

import asyncio
import sys

import msgspec
import uvloop

from bench.matcher import Matcher, Run, batches
from bench.workload import Shape, make_pilots
from wms.cli.session import quiet
from wms.db.database import Database


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What this matcher is to do, of what all of them do."""

    url: str
    shape: Shape
    requests: int
    matcher: int
    matchers: int
    batch: int = 1_024
    in_flight: int = 2
    warm_up: int = 2_000
    exact: bool = False
    """Whether no job may be overtaken by younger ones of another matcher's part."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    warm: Run
    run: Run
    index_seconds: float


async def work(task: Task) -> Outcome:
    pilots = make_pilots(task.shape, task.warm_up + task.requests)
    db = await Database.connect(task.url, size=task.in_flight + 4, application="bench")
    try:
        # They do not hear what the others claim, as those of a system do: what is gone costs them another draw.
        matcher = Matcher(db, seed=task.matcher, part=(task.matcher, task.matchers), exact=task.exact)
        loaded = await matcher.load()
        mine = range(task.matcher, len(pilots), task.matchers)
        few = task.warm_up // task.matchers
        warm = await matcher.serve(batches(pilots, mine[:few], task.batch), task.in_flight)
        requests = batches(pilots, mine[few:], task.batch)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.readline)
        run = await matcher.serve(requests, task.in_flight)
    finally:
        await db.close()
    return Outcome(warm=warm, run=run, index_seconds=loaded)


if __name__ == "__main__":
    quiet()
    task = msgspec.json.decode(sys.stdin.readline(), type=Task)
    sys.stdout.write(msgspec.json.encode(uvloop.run(work(task))).decode() + "\n")
