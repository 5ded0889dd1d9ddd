"""Kills a real agreement service over real Slurm, again and again, and holds Slurm's own list against the agreements.

The service is killed at named points and at any moment, while offers, confirmations and cancellations come. Afterwards everything that
was reserved has to be over in time: a reservation may outlive its agreement only while no service runs, or just starts.
"""

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from services.agreement.config import Config
from tests.services.hosting import hosted, settings
from tests.services.world import World
from tests.waiting import eventually
from wms.embedded.server import Program
from wms.faultpoint import AGREEMENT_POINTS, BUS_POINTS
from wms.files import to_toml
from wms.ids import AgreementId, JobId
from wms.messages.agreements import OFFERS_TOPIC, Cancel, Confirm, Reserve
from wms.runtime.host import Host

SITE = "A"
GRACE_SECONDS = 4
TEMPORARY_SECONDS = 3.0
OVER_SECONDS = 45.0
"""By then all is over: the longest reservation, and some rounds of a service that runs."""
POINTS = sorted(AGREEMENT_POINTS | BUS_POINTS)

OWN = """
[agreement]
site = "{site}"
grace_seconds = {grace}
turn_seconds = 1.0
reconcile_seconds = 1.0

[[elements]]
ce = "main"
kind = "slurm"
[elements.slurm]
configuration = "{slurm_conf}"
partition = "main"
"""

Listed = Callable[[], set[str]]


@dataclass
class CrashReport:
    """What was done and seen."""

    crashes: int = 0
    at_points: dict[str, int] = field(default_factory=dict)
    offers: int = 0
    states: dict[str, int] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    """The reservations that Slurm listed at some time."""
    left: set[str] = field(default_factory=set)
    """Those that it listed when all had to be over."""
    longest_seconds: float = 0.0
    """The longest time for which one was listed after the end of its agreement, while a service ran."""

    @property
    def ok(self) -> bool:
        """Whether nothing was left over."""
        return not self.left

    def text(self) -> str:
        points = ", ".join(f"{name} {count}" for name, count in sorted(self.at_points.items()))
        return (
            f"{self.crashes} crashes ({points}), {self.offers} offers, {len(self.made)} reservations seen in Slurm; "
            f"agreements: {self.states}; left over: {sorted(self.left) or 'none'}; "
            f"longest overstay at the end {self.longest_seconds:.1f} s"
        )


class Crashes:
    """One run: a world with a job, a host that sends as the broker does, and the service that is killed."""

    def __init__(
        self, world: World, bootstrap: str, slurm_conf: Path, directory: Path, listed: Listed, seed: int
    ) -> None:
        self._world = world
        self._directory = directory
        self._listed = listed
        self._rng = random.Random(seed)
        directory.mkdir(parents=True, exist_ok=True)
        self._told = settings(directory, world.url, bootstrap)
        self._own = OWN.format(site=SITE, grace=GRACE_SECONDS, slurm_conf=slurm_conf)
        self._sent: list[str] = []
        self.report = CrashReport()

    async def run(self, crashes: int) -> CrashReport:
        """Crash it so often, let it run until all has to be over, and tell what was seen."""
        (self._job,) = await self._world.submitted()
        config = msgspec.convert(self._told, Config)
        async with hosted("test_broker", config, _nothing) as host:
            relay = asyncio.create_task(host.relay.run())
            try:
                for _ in range(crashes):
                    await self._crash(host)
                await self._settle(host)
            finally:
                relay.cancel()
                await asyncio.wait([relay])
        return self.report

    async def _crash(self, host: Host) -> None:
        """Have a service die at a point, or after a moment, amid messages."""
        point = self._rng.choice([*POINTS, "", ""])
        count = self._rng.randint(1, 3)
        async with self._service({"WMS_FAULTPOINT": f"{point}:{count}"} if point else {}) as service:
            await eventually(lambda: self._is_up(service), 30)
            deadline = time.monotonic() + self._rng.uniform(0.2, 2.0)
            while service.running and time.monotonic() < deadline:
                await self._speak(host)
                self.report.made |= await asyncio.to_thread(self._listed)
                await asyncio.sleep(self._rng.uniform(0.0, 0.1))
            name = point if not service.running else "any moment"
            if service.running and service.pid is not None:
                os.kill(service.pid, signal.SIGKILL)
                await eventually(lambda: not service.running, 10)
        self.report.crashes += 1
        self.report.at_points[name] = self.report.at_points.get(name, 0) + 1

    async def _is_up(self, service: Program) -> bool:
        """Return whether the service runs its loops, or is dead already."""
        rows = await self._world.sql("select 1 from service_instance where pid = $1", service.pid or 0)
        return bool(rows) or not service.running

    async def _speak(self, host: Host) -> None:
        """Say something that the broker may say."""
        async with host.db.transaction() as tx:
            for _ in range(self._rng.randint(0, 3)):
                name = AgreementId(f"c-{len(self._sent)}")
                self._sent.append(name)
                tx.send(OFFERS_TOPIC, SITE, self._offer(name))
                self.report.offers += 1
            for each in self._rng.sample(self._sent[-30:], k=min(4, len(self._sent[-30:]))):
                kind = self._rng.choice([Confirm, Confirm, Cancel])
                tx.send(OFFERS_TOPIC, SITE, kind(agreement_id=AgreementId(each), site=SITE))

    def _offer(self, name: AgreementId) -> Reserve:
        return Reserve(
            agreement_id=name,
            job_id=JobId(self._job),
            vo="lhcb",
            owner="ann",
            group="physics",
            site=SITE,
            ce="main",
            cpus=self._rng.randint(1, 4),
            duration_seconds=float(self._rng.randint(3, 15)),
            expires_in_seconds=TEMPORARY_SECONDS,
        )

    async def _settle(self, host: Host) -> None:
        """Let a service run that nobody kills: all ends, and nothing stays in Slurm's list."""
        living = "select count(*) from agreement where state in ('Requested', 'Temporary', 'Confirmed')"
        async with self._service({}):
            # The far future of some starts is their windows' end, which is the site's horizon: they are cancelled.
            async with host.db.transaction() as tx:
                for each in self._sent:
                    if self._rng.random() < 0.5:
                        tx.send(OFFERS_TOPIC, SITE, Cancel(agreement_id=AgreementId(each), site=SITE))

            async def over() -> bool:
                return bool((await self._world.sql(living))[0][0] == 0)

            await eventually(over, OVER_SECONDS + 60)
            began = time.monotonic()
            while (left := await asyncio.to_thread(self._listed)) and time.monotonic() - began < OVER_SECONDS:
                await asyncio.sleep(0.1)
            self.report.longest_seconds = time.monotonic() - began
            self.report.left = left
        rows = await self._world.sql("select state, count(*) from agreement group by 1 order by 1")
        self.report.states = {row[0]: row[1] for row in rows}

    @asynccontextmanager
    async def _service(self, environment: dict[str, str]) -> AsyncIterator[Program]:
        place = self._directory / "service"
        place.mkdir(exist_ok=True)
        file = place / "config.toml"
        file.write_text(to_toml(self._told) + self._own)
        argv = [sys.executable, "-m", "services.agreement", "--config", str(file)]
        program = Program(place, name="agreement", argv=argv, env=environment)
        await program.start()
        try:
            yield program
        finally:
            await program.stop()


async def _nothing(_host: Host, _config: Config) -> None:
    """Build no loops."""
