"""The jobs that wait for a benchmark of a whole system: as many as a load will take, however fast the machine is."""

import asyncio
from collections import Counter

from msgspec.structs import replace

from bench.measuring import Cpu
from wms.client import Client, JobDescription
from wms.embedded.system import System

SITE, OF_SWEEPS = "bench", "bench-of-sweeps"
"""Where single jobs may run, and where the jobs of sweeps may."""

AT_REST, AT_REST_WITHIN_SECONDS = 0.3, 90
"""Of a processor, that the services use when nothing is to be done."""


class Stock:
    """Waiting jobs by site, in so many task queues, which differ in a site that is not the benchmark's."""

    def __init__(self, running: System, queues: int) -> None:
        self._running = running
        self._queues = queues
        self._left = Counter[str]()

    def took(self, site: str, jobs: int) -> None:
        """Note that so many jobs wait no more."""
        self._left[site] -= jobs

    async def fill(self, site: str, jobs: int) -> None:
        """Let at least so many jobs wait there, and the services come to rest if that took new ones."""
        if (missing := jobs - self._left[site]) <= 0:
            return
        each = -(-missing // self._queues)
        async with Client.connect(self._running.layout.root, timeout=300) as client:
            await client.submit(self._descriptions(site, each))
        self._left[site] += each * self._queues
        await at_rest(self._running)

    def _descriptions(self, site: str, each: int) -> list[JobDescription]:
        kinds = [
            JobDescription(executable="true", sites=(site, f"other-{n}"), cpu_time=600)
            for n in range(self._queues)
        ]
        if site == OF_SWEEPS:
            return [replace(kind, array=each) for kind in kinds]
        return [kind for _ in range(each) for kind in kinds]


async def at_rest(running: System) -> None:
    """Wait until the services have looked at all that came, and Postgres has cleaned up."""
    for _ in range(AT_REST_WITHIN_SECONDS):
        cpu = Cpu(running)
        await asyncio.sleep(1)
        used = cpu.used()
        if sum(used.values()) - used["benchmark"] < AT_REST:
            return
