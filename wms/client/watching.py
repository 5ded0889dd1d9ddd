"""Watching of jobs: yields each job whose state changes, until all have ended."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from datetime import datetime, timedelta

from msgspec.structs import replace

from wms.client.job_events import JobEvents
from wms.client.query_client import Counts, QueryClient
from wms.client.selector import RANGES_LIMIT
from wms.client.stuck_jobs import are_stuck
from wms.errors import Rejected, Unavailable
from wms.ids import joined
from wms.job.state import ENDED, State
from wms.messages.commands import Selector
from wms.messages.replies import JobLine

PAUSES = (0.2, 0.3, 0.5, 0.8, 1.2, 2.0)
"""Seconds between polls of the jobs while events cannot be read; the last value repeats."""
COUNT_SECONDS = (0.2, 2.0)
"""Seconds between polls of the counts: the first pause, and the longest (`CountPace`)."""
QUIET_SECONDS = 10.0
"""The longest pause in seconds between polls while events can be read."""
LEAST_PAUSE = 0.05
OVERLAP = timedelta(seconds=5)
LONG_OVERLAP = timedelta(seconds=120)
"""How far before the newest change seen the next poll begins. A long transaction may commit a change after a poll, but date it before."""


class JobWatch:
    """A watch of the selected jobs: yields them as they are now, then each job whose state changes, until all have ended.

    A job that changes state twice between two polls is yielded once, in its latest state. `timeout` is in seconds; None: no
    bound.
    """

    def __init__(
        self, client: QueryClient, events: JobEvents, selector: Selector, timeout: float | None
    ) -> None:
        self._client = client
        self._events = events
        self._selector = selector
        self._timeout = timeout
        self._seen: dict[int, tuple[str, datetime]] = {}
        self._live: set[int] = set()
        self._newest: datetime | None = None

    async def changes(self) -> AsyncGenerator[JobLine, None]:
        """Yield the jobs as they are now, then each job whose state has changed, until all have ended.

        Raise Unavailable if some jobs had not ended within the timeout.
        """
        loop = asyncio.get_running_loop()
        deadline = None if self._timeout is None else loop.time() + self._timeout
        since, looks = None, 0
        async with self._events:
            while True:
                began = loop.time()
                try:
                    async for job in self._client.jobs(replace(self._selector, changed_since=since)):
                        if self._is_news(job):
                            yield job
                except Unavailable:
                    if deadline is not None and loop.time() > deadline:
                        raise
                if not self._live:
                    return
                if deadline is not None and loop.time() >= deadline:
                    raise _not_ended(len(self._live), self._timeout)
                await asyncio.sleep(max(LEAST_PAUSE, loop.time() - began))
                moved = await self._events.moved(self._pause(looks, deadline, loop.time()))
                looks += 1
                since = self._newest and self._newest - (OVERLAP if moved else LONG_OVERLAP)

    def _is_news(self, job: JobLine) -> bool:
        self._newest = max(self._newest or job.changed_at, job.changed_at)
        (self._live.discard if job.state in ENDED else self._live.add)(job.job_id)
        now = (job.state, job.changed_at)
        if self._seen.get(job.job_id) == now:
            return False
        self._seen[job.job_id] = now
        return True

    def _pause(self, looks: int, deadline: float | None, now: float) -> float:
        pause = QUIET_SECONDS if self._events.readable else PAUSES[min(looks, len(PAUSES) - 1)]
        return pause if deadline is None else max(0.0, min(pause, deadline - now))


async def pinned(client: QueryClient, selector: Selector) -> Selector:
    """Return a selector of the ids that are selected now, if the given one names a state, a site or a time; else the given one.

    State, site and time of a job may change, its id does not. Raise Rejected if the ids form too many ranges.
    """
    if not (selector.states or selector.site or selector.changed_since):
        return selector
    ids = joined([(job.job_id, job.job_id) async for job in client.jobs(selector)])
    if len(ids) > RANGES_LIMIT:
        raise Rejected(
            "TOO_MANY_RANGES",
            f"{len(ids):,} separate ids are over {RANGES_LIMIT:,}",
            "watch by group, name or submission",
        )
    return Selector(ids=ids)


class CountPace:
    """Decides when to count jobs again: after half of the time that the rest will take, if jobs go on ending at the rate seen so far.

    So the end of many short jobs is noticed at once, with few polls before it. While no job ends, each pause is 1.5 times the last one.
    """

    def __init__(self) -> None:
        self._first: tuple[float, int] | None = None
        """When jobs were first counted, and how many had ended then."""
        self._ended = 0
        self._pause = COUNT_SECONDS[0]

    def pause(self, now: float, ended: int, left: int) -> float:
        """Return the seconds until the next poll, when `ended` jobs have ended and `left` have not. `now` is a time in seconds."""
        if self._first is None:
            self._first = now, ended
        elif ended > self._ended:
            began, before = self._first
            self._pause = max(LEAST_PAUSE, left * (now - began) / (ended - before) / 2)
        else:
            self._pause *= 1.5
        self._ended = ended
        self._pause = min(self._pause, COUNT_SECONDS[1])
        return self._pause


async def counts_at_end(
    client: QueryClient,
    selector: Selector,
    progress: Callable[[Counts], None] | None,
    timeout: float | None,
) -> Counts:
    """Return the counts of the selected jobs by state once all have ended, or the rest waits for jobs that failed.

    `progress` is called with the counts at each poll (None: not called). Raise Unavailable if some jobs had not ended within
    `timeout` seconds (None: no bound).
    """
    loop = asyncio.get_running_loop()
    deadline = None if timeout is None else loop.time() + timeout
    pace = CountPace()
    while True:
        began = loop.time()
        counts = await _patient_counts(client, selector, deadline)
        took = loop.time() - began
        if progress is not None:
            progress(counts)
        left = sum(count for state, count in counts.items() if state not in ENDED)
        if not left or (left == counts.get(State.HELD) and await _stays(client, selector)):
            return counts
        pause = max(took, pace.pause(loop.time(), sum(counts.values()) - left, left))
        if deadline is not None and loop.time() + pause > deadline:
            raise _not_ended(left, timeout)
        await asyncio.sleep(pause)


def _not_ended(jobs: int, timeout: float | None) -> Unavailable:
    words = "1 job has" if jobs == 1 else f"{jobs:,} jobs have"
    return Unavailable(
        f"{words} not ended within {timeout:g} s", "they go on; `wms why` tells what they wait for"
    )


async def _stays(client: QueryClient, selector: Selector) -> bool:
    with contextlib.suppress(Unavailable):
        return await are_stuck(client, selector)
    return False


async def _patient_counts(client: QueryClient, selector: Selector, deadline: float | None) -> Counts:
    while True:
        try:
            return await client.counts(selector)
        except Unavailable:
            if deadline is not None and asyncio.get_running_loop().time() > deadline:
                raise
