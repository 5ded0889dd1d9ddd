"""What runs beside the kills: a user at the gateway, one with brokered jobs, a fuzzer, an expensive user, and a watch over every partition."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence

import asyncpg
import msgspec

from tests.chaos import brokered, over_https
from tests.chaos.brokered import BrokeredUser
from tests.chaos.over_https import RemoteUser
from tests.chaos.victims import Kill
from tests.hostile import expensive
from tests.hostile.fuzzer import OWNER as FUZZER
from tests.hostile.fuzzer import Fuzzer
from tests.hostile.served import ServedWatch, Window
from tests.hostile.target import Target
from wms.client import Client, select
from wms.errors import Unavailable

SETTLE_SECONDS = 3.0
"""After its processes beat again a service takes its partitions, and the first probes come back."""
OWNERS = (FUZZER, expensive.OWNER, over_https.OWNER, brokered.OWNER)

LOST = """select a.job_id, a.epoch, a.pilot_id, extract(epoch from a.ended_at)::float8 as at
          from attempt a join job j using (job_id) where j.owner = $1 and a.outcome = 'lost'"""


class Beside(msgspec.Struct):
    """What runs beside the kills, and what it saw."""

    watch: ServedWatch
    remote: RemoteUser
    brokered: BrokeredUser
    fuzzer: Fuzzer | None = None
    faults: list[str] = []

    async def text(self) -> list[str]:
        """Return it for people."""
        told = (f"{consumer} {seconds} s" for consumer, seconds in sorted(self.watch.longest.items()))
        lines = [
            f"longest without a probe, restarts not counted ({self.watch.looks} looks): {', '.join(told)}"
        ]
        return [
            *lines,
            self.remote.text(),
            self.brokered.text(),
            *([await self.fuzzer.summary()] if self.fuzzer is not None else []),
        ]

    def replaced(self, kill: Kill, at: float) -> None:
        """Do not count until `at` (monotonic) what was not served since the kill."""
        self.watch.away.append((at - kill.recovered_after, at + SETTLE_SECONDS))


@contextlib.asynccontextmanager
async def beside(target: Target, *, fuzz_rate: float, is_expensive: bool, seed: int) -> AsyncIterator[Beside]:
    """Run it for as long as the body takes; afterwards its users' jobs are killed."""
    it = Beside(ServedWatch(target.database), RemoteUser(target), BrokeredUser(target))
    tasks = [asyncio.create_task(each.run()) for each in (it.watch, it.remote)]
    broking = asyncio.create_task(it.brokered.run())
    if fuzz_rate:
        # The event log is audited: what services alone write there is left alone.
        it.fuzzer = Fuzzer(target, rate=fuzz_rate, seed=seed, internal=False, quiet=True)
        tasks.append(asyncio.create_task(it.fuzzer.run()))
    if is_expensive:
        tasks.append(asyncio.create_task(expensive.keep_submitting(target)))
    try:
        yield it
        ended = [each for each in (*tasks, broking) if each.done()]
        it.faults += [f"what runs beside the kills ended: {each}" for each in ended]
        await it.remote.settle()
        broking.cancel()
        await it.brokered.settle()
    finally:
        for task in (*tasks, broking):
            task.cancel()
        await asyncio.gather(*tasks, broking, return_exceptions=True)
    await _kill_jobs(target)
    it.faults += [*it.watch.faults(), *await it.remote.check(), *await it.brokered.check()]


async def _kill_jobs(target: Target) -> None:
    async with Client.connect(target.root, timeout=60) as operator:
        for owner in OWNERS:
            with contextlib.suppress(Unavailable):
                await operator.kill(select(owner=owner))


async def lost_leases(
    connection: asyncpg.Connection, owner: str, kills: Sequence[Kill], lease: float
) -> list[str]:
    """Return the leases of this owner's jobs that were lost though their pilot was not killed.

    While a service or a server is away for a good part of a lease nobody can renew it: what is lost then is not counted.
    """
    killed = {each.pilot for each in kills}
    away = [
        (each.killed_at, each.killed_at + each.recovered_after + lease)
        for each in kills
        if each.pilot is None and each.recovered_after > lease / 3
    ]
    return [
        f"job {row['job_id']}, epoch {row['epoch']}: the lease of pilot {row['pilot_id']} was lost, and nobody had killed it"
        for row in await connection.fetch(LOST, owner)
        if row["pilot_id"] not in killed and not _inside(row["at"], away)
    ]


def _inside(at: float, windows: Iterable[Window]) -> bool:
    return any(first <= at <= last for first, last in windows)
