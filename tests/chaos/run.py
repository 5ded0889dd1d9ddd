"""One run: a system of real processes, real jobs, and a seeded plan of who is killed when; then everything is checked.

The seed decides who is killed, in which order and after which pause, which jobs their user kills, and what is submitted a
second time. The rest is up to the machine: a run is not the same twice, but its faults come in the same order.
"""

import asyncio
import contextlib
import random
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import asyncpg
import msgspec

from tests.chaos import executions, victims
from tests.chaos.beside import Beside, beside, lost_leases
from tests.chaos.victims import VICTIMS, Kill, NobodyThere, kill
from tests.hostile import expensive
from tests.hostile.target import attacked
from wms.audit import AuditReport, audit
from wms.bus.handling import ENDED_PROCESS
from wms.client import Client, JobDescription, Unavailable, select
from wms.embedded.leftover_processes import members
from wms.embedded.server import Server
from wms.embedded.supervisor import Supervisor
from wms.embedded.system import System
from wms.errors import Rejected
from wms.files import Value

LEASE_SECONDS, OFFER_SECONDS = 12.0, 6.0
SLOTS = 16
BATCH = 100
PATIENCE = 60.0
"""For one call of the client, through any outage."""

QUICK: Mapping[str, Mapping[str, str]] = {
    "job_manager": {
        "WMS_LEASE__LEASE_SECONDS": str(LEASE_SECONDS),
        "WMS_LEASE__OFFER_SECONDS": str(OFFER_SECONDS),
    },
    "matcher": {
        "WMS_LEASE__LEASE_SECONDS": str(LEASE_SECONDS),
        "WMS_LEASE__OFFER_SECONDS": str(OFFER_SECONDS),
    },
    # What one VO may reserve, for attacks in its name.
    "agreement": {
        "WMS_QUOTAS__MORDOR__AGREEMENTS": "20",
        "WMS_QUOTAS__MORDOR__CPUS": "8",
    },
    # Transfers that lie, drip or never end are to be given up within a test.
    "pilot_submitter": {
        "WMS_TRANSFERS__LIMITS__STALL_SECONDS": "2",
        "WMS_TRANSFERS__LIMITS__FILE_SECONDS": "30",
        "WMS_TRANSFERS__LIMITS__FILE_BYTES": "20000000",
        "WMS_TRANSFERS__LIMITS__TRIES": "2",
    },
}
INDEXES = '\n[indexes]\nhosts = ["127.0.0.1"]\n'
"""What the broker is told besides, which no variable can: jobs may name index servers of this machine."""

OWNER = "innocent"
"""Whose jobs are submitted and checked: of a fuzzer's and an expensive user's nothing is promised but that the audit holds."""
JOBS = """select job_id, state from job where owner = $1
          union all select n, b.state from block b join sweep s on s.first = b.sweep, generate_series(b.first, b.last) as n
          where s.owner = $1"""
ATTEMPTS = """select a.job_id, a.epoch, a.outcome, a.accepted_at from attempt a join job j using (job_id) where j.owner = $1"""


class _Quick(Supervisor):
    """Gives leases that run out soon."""

    async def add(self, server: Server) -> None:
        server.environment |= QUICK.get(server.name, {})
        if server.name == "resource_broker":
            with (server.data_dir / "config.toml").open("a") as config:
                config.write(INDEXES)
        await super().add(server)


class Outcome(msgspec.Struct, kw_only=True):
    """What a run came to."""

    seed: int
    jobs: int = 0
    seconds: float = 0.0
    kills: list[Kill] = []
    states: dict[str, int] = {}
    attempts: int = 0
    ran_again: int = 0
    set_aside: int = 0
    """Requests that were in hand alone when their process was killed, twice."""
    faults: list[str] = []
    beside: list[str] = []
    """What ran beside the kills, and what it saw."""
    audit: AuditReport | None = None

    @property
    def ok(self) -> bool:
        """Whether all held."""
        return not self.faults and self.audit is not None and self.audit.ok

    def text(self) -> str:
        """Return it for people."""
        lines = [
            f"seed {self.seed}: {self.jobs:,} jobs, {len(self.kills)} kills, {self.seconds:.0f} s",
            f"ended: {self.states}; {self.attempts:,} attempts; {self.ran_again} ran to their end more than once",
            f"requests set aside, since two kills in a row met them, and sent again: {self.set_aside}",
            *self._recoveries(),
            *self.beside,
            *(f"FAULT  {each}" for each in self.faults[:50]),
        ]
        if self.audit is not None:
            lines.append(self.audit.text(brief=True))
        return "\n".join(lines)

    def _recoveries(self) -> Iterator[str]:
        for victim in VICTIMS:
            mine = [each for each in self.kills if each.victim == victim]
            if mine:
                yield (
                    f"  {victim:15} killed {len(mine):3} times; median / longest: replaced after "
                    f"{_longest(each.recovered_after for each in mine)} s, "
                    f"a job ended after {_longest(each.progress_after for each in mine)} s"
                )


@contextlib.asynccontextmanager
async def quick_system(root: Path, *, durable: bool = False, **pilots: Value) -> AsyncIterator[System]:
    """Bring a system with quick leases up, and down again. `pilots` are settings of the pilot submitter."""
    system = System(
        root,
        slots=SLOTS,
        durable=durable,
        pilots={"isolation": "none", **pilots},
    )
    system.supervisor = _Quick(system.layout.root)
    async with system:
        yield system


def _longest(values: Iterable[float | None]) -> str:
    known = sorted(value for value in values if value is not None)
    return f"{known[len(known) // 2]:.1f} / {known[-1]:.1f}" if known else "-"


class Run:
    """One run in the directory `root`: until `jobs` have ended and `kills` are done, and for at least `seconds`."""

    def __init__(
        self,
        root: Path,
        *,
        seed: int,
        jobs: int,
        kills: int,
        seconds: float = 0.0,
        who: Sequence[str] = VICTIMS,
        fuzz_rate: float = 0.0,
        is_expensive: bool = False,
        link: str = "gateway",
    ) -> None:
        self._root = root
        self._link = link
        self._victims = who
        self._rng = random.Random(seed)
        self._wanted = (jobs, kills, seconds)
        self._beside = (fuzz_rate, is_expensive)
        self._out = Outcome(seed=seed)
        self._job_ids: list[int] = []
        self._killed: set[int] = set()
        self._began = time.monotonic()
        self._watches: list[asyncio.Task[None]] = []
        self.log = root / "executions"

    async def run(self) -> Outcome:
        """Do it all, and say how it went."""
        self._root.mkdir(parents=True, exist_ok=True)
        self.log.touch()
        payload = self._root / "payload.sh"
        payload.write_text(executions.PAYLOAD, "ascii")
        async with quick_system(self._root / "system", link=self._link) as system:
            assert system.facts is not None
            url = system.facts.postgres_url
            await self._submit_and_kill(system, url, payload)
            await self._check(system, url)
        self._check_orphans(system)
        self._out.seconds = time.monotonic() - self._began
        return self._out

    async def _submit_and_kill(self, system: System, url: str, payload: Path) -> None:
        fuzz_rate, is_expensive = self._beside
        async with (
            attacked(system) as target,
            Client.connect(target.settings(OWNER), timeout=PATIENCE) as client,
        ):
            async with beside(
                target, fuzz_rate=fuzz_rate, is_expensive=is_expensive, seed=self._out.seed
            ) as other:
                self._began = time.monotonic()
                killing = asyncio.create_task(self._kill_all(system, url, other))
                try:
                    await self._submit_all(client, payload, killing)
                    await killing
                    await self._all_ended(client)
                finally:
                    for task in (killing, *self._watches):
                        task.cancel()
            self._out.faults += other.faults
            self._out.beside = await other.text()

    # --- what goes on -------------------------------------------------------------------------------

    async def _kill_all(self, system: System, url: str, other: Beside) -> None:
        _, kills, seconds = self._wanted
        order: list[str] = []
        while len(self._out.kills) < kills or time.monotonic() - self._began < seconds:
            if not order:
                order = list(self._victims)
                self._rng.shuffle(order)
            await asyncio.sleep(self._rng.uniform(0.0, 1.5))
            victim = order.pop()
            try:
                done = await kill(victim, system, url, self._began)
            except NobodyThere:
                continue
            other.replaced(done, time.monotonic())
            self._out.kills.append(done)
            self._watches.append(asyncio.create_task(self._watch(url, done)))
            sys.stdout.write(
                f"{done.at:7.1f} s  {done.victim:15} back after {done.recovered_after:5.2f} s   "
                f"{len(self._job_ids):,} jobs submitted\n"
            )
            sys.stdout.flush()

    async def _watch(self, url: str, done: Kill) -> None:
        done.progress_after = await victims.until_progress(url, self._began + done.at, 60.0)

    async def _submit_all(self, client: Client, payload: Path, killing: asyncio.Task[None]) -> None:
        """Submit batches for as long as kills go on, and enough of them; keep the queue neither empty nor endless."""
        jobs, _, _ = self._wanted
        number = 0
        while len(self._job_ids) < jobs or not killing.done():
            if killing.done():
                killing.result()
            await self._submit(client, payload, number)
            number += 1
            await self._until_fewer_than(client, 4 * BATCH)

    async def _submit(self, client: Client, payload: Path, number: int) -> None:
        description = JobDescription(
            executable="/bin/sh",
            arguments=(str(payload), str(self.log)),
            name=f"chaos {number}",
            cpu_time=60,
            max_attempts=50,
            array=BATCH,
        )
        name = f"batch-{number}"
        ids = await self._patiently(lambda: client.submit(description, id=name))
        if self._rng.random() < 0.3:
            again = await self._patiently(lambda: client.submit(description, id=name))
            # Not `repeated`: the first answer may come twice, when what sent it died before it knew that it had.
            if again.ids != ids.ids:
                self._out.faults.append(f"{name} was answered {ids}, and then {again}")
        mine = list(ids.job_ids())
        self._job_ids += mine
        doomed = self._rng.sample(mine, 2)
        order = select([str(each) for each in doomed])
        await self._patiently(lambda: client.kill(order, id=f"kill-{number}"))
        self._killed |= set(doomed)

    async def _until_fewer_than(self, client: Client, live: int) -> None:
        while True:
            counts = await self._patiently(lambda: client.counts(select(everything=True)))
            if sum(counts.get(state, 0) for state in ("Waiting", "Matched", "Running")) < live:
                return
            await asyncio.sleep(0.2)

    async def _patiently(self, call):
        """Call again, under the same id, what had no answer in time, or changed nothing since it was set aside."""
        last: Exception | None = None
        for _ in range(3):
            try:
                return await call()
            except Unavailable as fault:
                last = fault
            except Rejected as fault:
                if fault.code != ENDED_PROCESS.code:
                    raise
                # Two kills in a row met this message alone in hand. Its sender was told so, and asks again.
                self._out.set_aside += 1
                last = fault
        assert last is not None
        raise last

    async def _all_ended(self, client: Client) -> None:
        try:
            await client.wait(select(everything=True), timeout=120)
        except Unavailable as fault:
            self._out.faults.append(f"{fault}: {await client.counts(select(everything=True))}")

    # --- what came of it ----------------------------------------------------------------------------

    async def _check(self, system: System, url: str) -> None:
        connection = await asyncpg.connect(url)
        try:
            await self._drained(connection)
            jobs = {row["job_id"]: row["state"] for row in await connection.fetch(JOBS, OWNER)}
            attempts = await connection.fetch(ATTEMPTS, OWNER)
            lost = await lost_leases(connection, OWNER, self._out.kills, LEASE_SECONDS)
        finally:
            await connection.close()
        out = self._out
        out.faults += lost
        out.jobs = len(jobs)
        out.attempts = len(attempts)
        for state in jobs.values():
            out.states[state] = out.states.get(state, 0) + 1
        if sorted(jobs) != sorted(self._job_ids):
            out.faults.append(f"{len(self._job_ids)} jobs were acknowledged, {len(jobs)} are there")
        for job_id, may_be in executions.expected(self._job_ids, self._killed).items():
            if jobs.get(job_id) not in may_be:
                out.faults.append(f"job {job_id} is {jobs.get(job_id)}, not {may_be}")
        ran = executions.read(self.log)
        out.faults += executions.faults(ran, attempts)
        out.ran_again = executions.repeated(ran)
        assert system.broker is not None
        out.audit = await audit(url, kafka=system.broker.bootstrap)

    async def _drained(self, connection: asyncpg.Connection) -> None:
        """After the last fault all that was to be sent is sent, and all that was to be handled is handled, in a minute.

        What an expensive user sent waits aside and counts as lag: each of it takes seconds, and harms its owner alone.
        """
        patience = 60
        deadline = time.monotonic() + patience
        query = """select (select count(*) from outbox) as outbox, (select count(*) from lease) as leases,
            greatest(0, (select coalesce(sum(lag.value::int), 0)
                         from service_instance i, jsonb_each_text(i.health -> 'lag') lag
                         where heartbeat_at > now() - interval '3 s')
                        - (select count(*) from parked_message where owner = $1)) as lag"""
        while any(left := dict(await connection.fetchrow(query, expensive.OWNER)).values()):
            if time.monotonic() > deadline:
                self._out.faults.append(
                    f"{patience} s after the last job there were left: outbox, leases, lag {left}"
                )
                return
            await asyncio.sleep(0.1)

    def _check_orphans(self, system: System) -> None:
        left = [each.pid for each in members(system.supervisor.system)] + victims.payloads(system)
        if left:
            self._out.faults.append(f"processes left behind: {left}")
