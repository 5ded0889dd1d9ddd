"""Replays a planned trace on a running system: advertises its sites, submits its jobs when they are due, and waits for their ends."""

import asyncio
import contextlib
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from wms.bus.kafka import HEADER, Kafka
from wms.client import ENDED, Client, ClientSettings, Selector, Unavailable
from wms.client.selector import RANGES_LIMIT
from wms.embedded.own_system import RunFailed
from wms.ids import Identity, joined
from wms.messages.ads import TOPIC, Advertise, Withdraw
from wms.messages.wire import encode
from wms.replay.owners import Keys, Owners
from wms.replay.plan import CE, Planned, TracePlan
from wms.replay.report import ReplayReport, report
from wms.runtime import clock

TICK_SECONDS = 0.1
AD_SECONDS = 60.0
LOOK_SECONDS = 0.5
PATIENCE_SECONDS = 300.0
"""A replay is abandoned if for this many seconds no job runs and none ends."""

Tell: TypeAlias = Callable[[Mapping[str, int]], None]
"""A function that is called with the number of the replay's jobs in each state."""


async def replay(settings: ClientSettings, plan: TracePlan, tell: Tell) -> ReplayReport:
    """Replay a trace on the system that the settings name, and return the report. `tell` is called with the numbers of jobs by state.

    Raise RunFailed if no job has run or ended for `PATIENCE_SECONDS`.
    """
    keys = Keys(settings)
    began_at = clock.now()
    with tempfile.TemporaryDirectory(prefix="wms-replay-") as tokens:
        owners = Owners(settings, keys, Path(tokens))
        jobs = TraceSubmitter(plan, owners)
        try:
            async with owners.operator() as operator, advertised(settings, keys, plan):
                await _submit_and_watch(jobs, operator, tell)
        finally:
            await owners.close()
    return await report(settings, jobs.submitted, jobs.longest_lag, began_at)


@contextlib.asynccontextmanager
async def advertised(settings: ClientSettings, keys: Keys, plan: TracePlan) -> AsyncIterator[None]:
    """Advertise the computing elements of a plan during an `async with` block, and withdraw them at its end."""
    kafka = Kafka(settings.kafka, "wms-replay")
    await kafka.start()
    headers = [(HEADER, f"Bearer {keys.sites()}".encode())]
    names = [f"{element.site}/{CE}".encode() for element in plan.elements]

    async def publish() -> None:
        now = clock.now()
        ads = [
            Advertise(element=element, advertised_at=now, lifetime_seconds=3 * AD_SECONDS)
            for element in plan.elements
        ]
        await kafka.send_many(TOPIC, names, [encode(ad) for ad in ads], headers)

    async def repeat() -> None:
        while True:
            await asyncio.sleep(AD_SECONDS)
            with contextlib.suppress(Unavailable):
                await publish()

    try:
        await publish()
        repeating = asyncio.create_task(repeat())
        try:
            yield
        finally:
            repeating.cancel()
            gone = [Withdraw(site=each.site, ce=CE, advertised_at=clock.now()) for each in plan.elements]
            with contextlib.suppress(Unavailable):
                await kafka.send_many(TOPIC, names, [encode(each) for each in gone], headers)
    finally:
        await kafka.close()


class TraceSubmitter:
    """Submits the jobs of a plan, each when it is due.

    `submitted` has the jobs submitted so far, by id. `longest_lag` is the largest delay of a submission so far, in seconds.
    """

    def __init__(self, plan: TracePlan, owners: Owners) -> None:
        self._plan = plan
        self._owners = owners
        self._run = uuid.uuid4().hex
        self.submitted: dict[int, Planned] = {}
        self.longest_lag = 0.0

    async def run(self) -> None:
        """Submit all jobs of the plan, each as soon as it is due."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        jobs = self._plan.jobs
        at = 0
        while at < len(jobs):
            passed = loop.time() - began
            until = at
            while until < len(jobs) and jobs[until].due <= passed:
                until += 1
            if until > at:
                self.longest_lag = max(self.longest_lag, passed - jobs[at].due)
                await self._submit(jobs[at:until], at)
                at = until
            else:
                await asyncio.sleep(max(TICK_SECONDS, jobs[at].due - passed))

    async def _submit(self, jobs: Sequence[Planned], at: int) -> None:
        batches: dict[Identity, list[Planned]] = {}
        for job in jobs:
            batches.setdefault(job.identity, []).append(job)
        taken = await self._owners.submit(batches, f"{self._run}/{at}")
        self.submitted.update((job_id, job) for job, job_id in taken)


async def _submit_and_watch(jobs: TraceSubmitter, operator: Client, tell: Tell) -> None:
    """Submit the jobs and wait until all have ended. If that fails or is cancelled, kill the remaining jobs."""
    submitting = asyncio.create_task(jobs.run())
    try:
        await _watch(jobs, operator, submitting, tell)
    except BaseException:
        submitting.cancel()
        await asyncio.wait([submitting])
        with contextlib.suppress(Exception):
            async with asyncio.timeout(10):
                await _kill(operator, jobs)
        raise


async def _watch(jobs: TraceSubmitter, operator: Client, submitting: asyncio.Task[None], tell: Tell) -> None:
    loop = asyncio.get_running_loop()
    before, changed_at = 0, loop.time()
    while True:
        over = submitting.done()
        if over:
            submitting.result()
        counts = await _counts(operator, list(jobs.submitted))
        tell(counts)
        ended = sum(count for state, count in counts.items() if state in ENDED)
        if over and ended == len(jobs.submitted):
            return
        if ended != before or counts.get("Running", 0):
            before, changed_at = ended, loop.time()
        elif loop.time() - changed_at > PATIENCE_SECONDS:
            raise RunFailed(f"no job ended in {PATIENCE_SECONDS:g} s, and none runs: {counts}")
        await asyncio.sleep(LOOK_SECONDS)


async def _counts(operator: Client, job_ids: Sequence[int]) -> dict[str, int]:
    total: dict[str, int] = {}
    for selector in _selectors(job_ids):
        for state, count in (await operator.counts(selector)).items():
            total[state] = total.get(state, 0) + count
    return total


async def _kill(operator: Client, jobs: TraceSubmitter) -> None:
    for selector in _selectors(list(jobs.submitted)):
        await operator.kill(selector, "the replay was stopped")


def _selectors(job_ids: Sequence[int]) -> Iterator[Selector]:
    ranges = joined((job_id, job_id) for job_id in job_ids)
    for start in range(0, len(ranges), RANGES_LIMIT):
        yield Selector(ids=ranges[start : start + RANGES_LIMIT])
