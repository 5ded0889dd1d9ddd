"""Kills broker, agreement services and pilot submitter of a whole system over two real Slurm clusters, side by side, again and again.

Users' jobs that want reservations come all the time, some of them in pairs that start together at both clusters, and some are killed.
Slurm's own lists are held against the agreements while
processes die. Then nobody kills any more: every job has to end, and every reservation to be gone.
"""

import asyncio
import random
import shutil
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
from msgspec.structs import replace

from tests.middleware import Sites
from tests.testbed.agreement.cluster import listed
from tests.testbed.everywhere import advertise
from tests.waiting import eventually
from wms.audit import audit
from wms.client import Client, JobDescription, select
from wms.embedded import layout as plan
from wms.embedded.process import tail
from wms.embedded.server import Program
from wms.embedded.system import System
from wms.faultpoint import AGREEMENT_POINTS, BROKER_POINTS, BUS_POINTS, PLACING_POINTS
from wms.files import to_toml, write_secret
from wms.ids import JobId
from wms.jobdesc.preferences import JobPreferences

CLUSTERS = ("alpha", "beta")
OPEN_JOBS = 6
"""So many jobs are under way at a time."""
LONGEST_LIFE = 1.0
"""Seconds that a victim lives at most once it is up."""
UP_WITHIN = 120.0
OVER_WITHIN = 600.0
"""Seconds in which all jobs end, and all reservations are gone, once nobody is killed any more."""
JOB = JobDescription(
    executable="/bin/sleep", arguments=("0.5",), cpu_time=20, max_attempts=50, preferences=JobPreferences()
)
PAIR = replace(JOB, array=len(CLUSTERS), coallocate=True)
"""Jobs that start together, one at each cluster."""
ELEMENT = """
[[elements]]
ce = "main"
kind = "slurm"
[elements.slurm]
configuration = "{slurm_conf}"
partition = "main"
"""
LIVING = "select count(*) from agreement where state in ('Requested', 'Temporary', 'Confirmed')"
HELD = """select reservation, extract(epoch from now() - changed_at)::float8 as over_seconds
          from agreement where reservation = any ($1) and state not in ('Requested', 'Temporary', 'Confirmed')"""
TOGETHER = """select count(distinct p.site) = count(*) and max(p.start_at) - min(p.start_at) <= interval '1 s'
              from placement p join job using (job_id) where job_id = any ($1::bigint[]) and p.state = 'Ended'
              having count(*) = $2"""
"""Whether the jobs of an array ran at different sites in reservations that start together; nothing unless all ran."""
BEATING = "select 1 from service_instance where pid = $1"


class Victim(NamedTuple):
    """A service that is killed: its program, its configuration, and the points at which it may die."""

    name: str
    service: str
    told: Mapping[str, Any]
    points: frozenset[str]
    text: str = ""
    """What its file ends with."""


@dataclass
class SystemCrashReport:
    """What was done and seen."""

    crashes: Counter[str] = field(default_factory=Counter)
    at_points: int = 0
    jobs: int = 0
    killed_jobs: int = 0
    pairs: int = 0
    """So many pairs of jobs ran."""
    apart: set[int] = field(default_factory=set)
    """The first jobs of pairs that ran, but not together."""
    released: int = 0
    """How often a job was released that was held as the broker died too often at its step."""
    ended: dict[str, int] = field(default_factory=dict)
    agreements: dict[str, int] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    """The reservations that Slurm listed at some time."""
    past_end_seconds: float = 0.0
    """The longest time for which one was listed after its own end."""
    unneeded_seconds: float = 0.0
    """The longest time for which one was listed after its agreement was over, while services were killed."""
    left: set[str] = field(default_factory=set)
    """Those that were listed when all had to be over."""
    gone_after_seconds: float = 0.0
    """When the last was gone, after the last agreement was over."""
    seconds: float = 0.0
    audit: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing was left over, every pair ran together, and the auditor found nothing."""
        return not self.left and not self.apart and self.audit == "ok"

    def text(self) -> str:
        """Return it for people."""
        kills = ", ".join(f"{name} {count}" for name, count in sorted(self.crashes.items()))
        return (
            f"{self.crashes.total()} crashes in {self.seconds:.0f} s ({kills}; {self.at_points} at named points), "
            f"{self.jobs} jobs ({self.killed_jobs} killed and {self.released} released by their user; {self.ended}), "
            f"{self.pairs} pairs ran, apart: {sorted(self.apart) or 'none'}; "
            f"{len(self.seen)} reservations seen in Slurm; agreements: {self.agreements}; "
            f"longest past its end in Slurm's list {self.past_end_seconds:.1f} s, "
            f"after its agreement was over {self.unneeded_seconds:.1f} s; left over: {sorted(self.left) or 'none'}, "
            f"the last gone after {self.gone_after_seconds:.1f} s; audit: {self.audit}"
        )


async def _under_way(client: Client) -> list[str]:
    """Return the jobs that have not ended, with the reason for the latest change of their states."""
    found = []
    async for each in client.jobs(select(state=["live"])):
        last = (await client.show(each.job_id)).history[-1]
        found.append(f"job {each.job_id} is {each.state}: {last.reason} {last.text}")
    return found


class SystemCrashes:
    """One run over a testbed; the seed decides who dies where and after which time, and which jobs are killed."""

    def __init__(self, testbed: Sites, place: Path, seed: int) -> None:
        self._testbed = testbed
        self._place = place
        self._seed = seed
        self._wanted = 0
        self._until = 0.0
        self._calm = asyncio.Event()
        self._pairs: list[list[JobId]] = []
        self.report = SystemCrashReport()

    async def run(self, crashes: int, seconds: float = float("inf")) -> SystemCrashReport:
        """Crash services so often, or for so long; then let them run until all has to be over, and tell what was seen."""
        self._wanted = crashes
        self._until = time.monotonic() + seconds
        began = time.monotonic()
        async with (
            System(
                self._place / "own",
                kafka="loopback",
                durable=False,
                services=("job_manager", "matcher", "gateway"),
                pilots={"local_sites": ["nowhere"], "idle_seconds": 3.0, "given_up_seconds": 60.0},
            ) as system,
            Client.connect(system.layout.root, timeout=60) as client,
        ):
            assert system.facts is not None
            url = system.facts.postgres_url
            for name in CLUSTERS:
                await advertise(url, name, "slurm", 8)
            connection = await asyncpg.connect(url)
            try:
                await self._crash_all(system, client, connection, url)
            finally:
                await connection.close()
            report = await audit(url)
            self.report.audit = "ok" if report.ok else report.text(brief=True)
        self.report.seconds = time.monotonic() - began
        return self.report

    async def _crash_all(
        self, system: System, client: Client, connection: asyncpg.Connection, url: str
    ) -> None:
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(self._watch(url))
            killers = [
                group.create_task(
                    self._keep_killing(system, each, random.Random(f"{self._seed} {each.name}"))
                )
                for each in self._victims(system)
            ]
            await self._submit(client)
            await self._settle(client, connection)
            watch.cancel()
            for each in killers:
                each.cancel()

    # --- victims ----------------------------------------------------------------------------------

    def _victims(self, system: System) -> list[Victim]:
        brokering = {
            "brokering": {
                "claim_seconds": 2.0,
                "decision_seconds": 4.0,
                "temporary_seconds": 10.0,
                "sites_asked": 2,
            }
        }
        endpoints: list[dict[str, str | float]] = [
            {
                "site": name,
                "ce": "main",
                "directory": str(self._place / name),
                "configuration": str(self._testbed.slurm(name)),
                "partition": "main",
                "follow_every_seconds": 1.0,
                "lifetime_seconds": 900.0,
            }
            for name in CLUSTERS
        ]
        return [
            Victim("resource_broker", "resource_broker", brokering, BROKER_POINTS | BUS_POINTS),
            Victim(
                "pilot_submitter",
                "pilot_submitter",
                {},
                PLACING_POINTS | BUS_POINTS,
                "\n" + to_toml({"slurm": endpoints}),
            ),
            *(self._agreement(name) for name in CLUSTERS),
        ]

    def _agreement(self, site: str) -> Victim:
        settings = {"site": site, "grace_seconds": 30.0, "turn_seconds": 1.0, "reconcile_seconds": 1.0}
        element = ELEMENT.format(slurm_conf=self._testbed.slurm(site))
        points = AGREEMENT_POINTS | BUS_POINTS
        return Victim(f"agreement-{site}", "agreement", {"agreement": settings}, points, element)

    async def _keep_killing(self, system: System, victim: Victim, rng: random.Random) -> None:
        """Start a service and kill it, again and again; at the end start it once more, and let it run."""
        assert system.facts is not None
        place = self._place / victim.name
        config = place / "config.toml"
        write_secret(config, _configuration(system.facts, victim))
        argv = [sys.executable, "-m", f"services.{victim.service}", "--config", str(config)]
        connection = await asyncpg.connect(system.facts.postgres_url)
        try:
            while True:
                point = rng.choice([*sorted(victim.points), *[""] * len(victim.points)])
                armed = {"WMS_FAULTPOINT": f"{point}:{rng.randint(1, 3)}"} if point else {}
                async with _running(
                    place, victim.name, argv, {} if self._calm.is_set() else armed
                ) as program:
                    await self._live(program, connection, rng.uniform(0.0, LONGEST_LIFE))
                    at_point = not program.running
                    await program.kill()
                    code = await program.wait()
                    # The log goes with the run's directory.
                    said = tail(program.log_path)
                    assert code == -signal.SIGKILL, f"{victim.name} ended by itself with {code}: {said}"
                    self._count(victim, at_point=at_point)
        finally:
            await connection.close()

    async def _live(self, program: Program, connection: asyncpg.Connection, seconds: float) -> None:
        """Return when a program has been up for so many seconds, or is dead; never, if nobody is to be killed any more."""

        async def is_up() -> bool:
            return not program.running or bool(await connection.fetchval(BEATING, program.pid or 0))

        await eventually(is_up, UP_WITHIN)
        deadline = time.monotonic() + seconds
        while program.running and (self._calm.is_set() or time.monotonic() < deadline):
            await asyncio.sleep(0.02)

    def _count(self, victim: Victim, *, at_point: bool) -> None:
        self.report.crashes[victim.name] += 1
        self.report.at_points += at_point
        if self.report.crashes.total() >= self._wanted or time.monotonic() > self._until:
            self._calm.set()

    # --- users ------------------------------------------------------------------------------------

    async def _submit(self, client: Client) -> None:
        """Keep some jobs under way as long as services are killed; kill one in five."""
        rng = random.Random(f"{self._seed} jobs")
        while not self._calm.is_set():
            await self._release(client)
            counts = await client.counts(select(everything=True))
            under_way = sum(
                count for state, count in counts.items() if state not in ("Done", "Failed", "Killed")
            )
            for _ in range(OPEN_JOBS - under_way):
                is_pair = rng.random() < 0.2
                submission = await client.submit(PAIR if is_pair else JOB)
                jobs = [JobId(each) for each in submission.job_ids()]
                self.report.jobs += len(jobs)
                if is_pair:
                    self._pairs.append(jobs)
                if rng.random() < 0.2:
                    await asyncio.sleep(rng.uniform(0.0, 2.0))
                    await client.kill(submission.selector())
                    self.report.killed_jobs += 1
            await asyncio.sleep(0.3)

    async def _release(self, client: Client) -> None:
        """Do what a user does whose job is held because a broker began its step too often, and died each time."""
        held = select(state=["Held"])
        if await client.counts(held):
            self.report.released += (await client.release(held)).changed

    async def _settle(self, client: Client, connection: asyncpg.Connection) -> None:
        """Let the services run: all jobs end, all agreements are over, and nothing stays in Slurm's lists."""
        deadline = time.monotonic() + OVER_WITHIN
        while await client.counts(select(state=["live"])):
            assert time.monotonic() < deadline, await _under_way(client)
            await self._release(client)
            await asyncio.sleep(0.5)
        self.report.ended = dict(await client.counts(select(everything=True)))
        for pair in self._pairs:
            together = await connection.fetchval(TOGETHER, pair, len(pair))
            self.report.pairs += together is not None
            self.report.apart |= {pair[0]} if together is False else set()

        async def over() -> bool:
            return bool(await connection.fetchval(LIVING) == 0)

        await eventually(over, OVER_WITHIN)
        began = time.monotonic()
        while (left := await asyncio.to_thread(self._listed)) and time.monotonic() - began < 60:
            await asyncio.sleep(0.2)
        self.report.left = set(left)
        self.report.gone_after_seconds = time.monotonic() - began
        rows = await connection.fetch("select state, count(*) from agreement group by 1 order by 1")
        self.report.agreements = {row[0]: row[1] for row in rows}

    # --- Slurm ------------------------------------------------------------------------------------

    async def _watch(self, url: str) -> None:
        """Hold Slurm's lists against the agreements, twice a second."""
        connection = await asyncpg.connect(url)
        try:
            while True:
                await self._look(connection)
                await asyncio.sleep(0.5)
        finally:
            await connection.close()

    async def _look(self, connection: asyncpg.Connection) -> None:
        ends = await asyncio.to_thread(self._listed)
        self.report.seen |= ends.keys()
        now = await connection.fetchval("select now()")
        past = [(now - end).total_seconds() for end in ends.values()]
        over = [row["over_seconds"] for row in await connection.fetch(HELD, list(ends))]
        self.report.past_end_seconds = max(self.report.past_end_seconds, *past, 0.0)
        self.report.unneeded_seconds = max(self.report.unneeded_seconds, *over, 0.0)

    def _listed(self) -> dict[str, datetime]:
        """Return the ends of what both clusters list, by name."""
        return {
            name: each.ends_at
            for cluster in CLUSTERS
            for name, each in listed(self._testbed, cluster).items()
        }


def _configuration(facts: plan.ConfigValues, victim: Victim) -> str:
    """Return the text of a victim's file: the system's, with settings of its own."""
    plan.service(victim.service, facts)
    usual = (facts.layout.service(victim.service) / "config.toml").read_text()
    if not victim.told:
        return usual + victim.text
    settings = tomllib.loads(usual)
    settings.pop("elements", None)
    for section, table in victim.told.items():
        settings[section] = {**settings.get(section, {}), **table}
    return to_toml(settings) + victim.text


@asynccontextmanager
async def _running(
    place: Path, name: str, argv: list[str], environment: dict[str, str]
) -> AsyncIterator[Program]:
    program = Program(place, name=name, argv=argv, env=environment)
    await program.start()
    try:
        yield program
    finally:
        await program.stop()


@asynccontextmanager
async def system_crashes(testbed: Sites, seed: int) -> AsyncIterator[SystemCrashes]:
    """Prepare a run whose files are where all users of the machine may read them."""
    place = testbed.root / "crashes"
    place.mkdir(mode=0o755)
    try:
        yield SystemCrashes(testbed, place, seed)
    finally:
        shutil.rmtree(place, ignore_errors=True)
