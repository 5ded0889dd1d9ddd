"""An innocent user beside the attack: short jobs one after another, and one long job whose lease must not be lost."""

import asyncio
import contextlib
import statistics
import time
from collections.abc import AsyncIterator, Sequence

import msgspec

from tests.hostile.served import not_served
from tests.hostile.target import Target
from tests.waiting import eventually
from wms.client import Client, JobDescription, select

RUN_SECONDS = 2
"""How long a short job runs."""
SAMPLES = 3
"""Jobs from which the usual time is taken."""
LEAST_BESIDE = 2
"""How many jobs run beside an attack that is over sooner: one during it, and one after it."""
SLOWER_AT_MOST = 2.0
PATIENCE_SECONDS = 120.0


class Innocent:
    """A user with jobs like any other's."""

    owner = "innocent"

    def __init__(self, client: Client, target: Target, job: JobDescription | None = None) -> None:
        """`job` is what it runs again and again; a short job for any pilot by default."""
        self.client = client
        self.target = target
        self.job = job or _sleeping(RUN_SECONDS)
        self.usual_seconds = 0.0

    async def learn_usual(self) -> None:
        """Take the median time of a few jobs from submission to end while nobody attacks."""
        await self.run_one()  # The first waits for a pilot.
        self.usual_seconds = statistics.median([await self.run_one() for _ in range(SAMPLES)])

    async def run_one(self) -> float:
        """Submit a job, wait until it is Done, and return after how many seconds it was."""
        began = time.monotonic()
        ids = (await self.client.submit(self.job)).ids
        counts = await self.client.wait(select(everything=False, jobs=[ids[0][0]]), timeout=PATIENCE_SECONDS)
        assert counts == {"Done": 1}, (await self.client.show(ids[0][0])).attempts
        return time.monotonic() - began

    @contextlib.asynccontextmanager
    async def beside(self) -> AsyncIterator["Beside"]:
        """Run jobs for as long as the body takes and then check them all.

        AssertionError: a job took more than twice its usual time, or the long job was given to a second pilot.
        """
        long_job = (await self.client.submit(_sleeping(10_000))).ids[0][0]
        await self._until_running(long_job)
        beside = Beside()
        jobs = asyncio.create_task(self._keep_running(beside))
        try:
            yield beside
            beside.enough.set()
            await jobs
            detail = await self.client.show(long_job)
            began = [each for each in detail.attempts if each.started_at]
            assert (detail.job.state, len(began)) == ("Running", 1), detail
            await self.check_seconds(max(beside.seconds), beside.seconds)
            await eventually(self._all_served, PATIENCE_SECONDS)
        finally:
            jobs.cancel()
            await self.client.kill(select([long_job]))
            await self.client.wait(select([long_job]), timeout=PATIENCE_SECONDS)

    async def check_seconds(self, seconds: float, seen: Sequence[float]) -> None:
        """Hold the time of a job against the usual one; on a machine that is busier than it was, against the time that is usual now.

        AssertionError: it took more than twice as long. `seen` are the times of all jobs, for the error.
        """
        if seconds > SLOWER_AT_MOST * self.usual_seconds:
            self.usual_seconds = max(self.usual_seconds, *[await self.run_one() for _ in range(SAMPLES)])
        limit = SLOWER_AT_MOST * self.usual_seconds
        assert seconds <= limit, f"{seen} s beside the attack; usual {self.usual_seconds:.2f} s"

    async def _all_served(self) -> bool:
        wrong = await not_served(self.target.root)
        assert not wrong, wrong
        return True

    async def _keep_running(self, beside: "Beside") -> None:
        while len(beside.seconds) < LEAST_BESIDE or not beside.enough.is_set():
            beside.seconds.append(round(await self.run_one(), 2))

    async def _until_running(self, job_id: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await self.client.counts(select([job_id])) != {"Running": 1}:
                await asyncio.sleep(0.05)


class Beside(msgspec.Struct):
    """What the innocent user saw during an attack: the seconds of each short job."""

    seconds: list[float] = []
    enough: asyncio.Event = msgspec.field(default_factory=asyncio.Event)


def _sleeping(seconds: int) -> JobDescription:
    return JobDescription(executable="/bin/sleep", arguments=(str(seconds),), cpu_time=600, max_attempts=1)
