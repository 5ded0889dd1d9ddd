"""What the tests of whole agents share: a system without pilots of its own, and agents started by hand."""

import asyncio
import contextlib
import itertools
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import psutil

from tests.waiting import eventually
from wms.auth.keys import load_key
from wms.auth.orders import OrderKeys, PilotCredential
from wms.auth.token import Claims, mint
from wms.client import Client, JobDescription, select
from wms.embedded.server import Server
from wms.embedded.supervisor import Supervisor
from wms.embedded.system import System
from wms.files import to_toml, write_secret
from wms.runtime import clock
from wms.transfer import SandboxStore, open_store

LEASE_SECONDS, OFFER_SECONDS = 6.0, 4.0

_numbers = itertools.count(1)


class _Quick(Supervisor):
    """Gives leases that run out soon."""

    lease_seconds = LEASE_SECONDS

    async def add(self, server: Server) -> None:
        if server.name in ("job_manager", "matcher"):
            server.environment["WMS_LEASE__LEASE_SECONDS"] = str(self.lease_seconds)
            server.environment["WMS_LEASE__OFFER_SECONDS"] = str(OFFER_SECONDS)
        await super().add(server)


class Grid:
    """Job manager, matcher and their servers, and a user at them."""

    def __init__(self, system: System, client: Client) -> None:
        self.system = system
        self.client = client
        assert system.facts is not None
        self.facts = system.facts
        self.url = system.facts.postgres_url
        self.agents: list[Agent] = []
        self.orders = OrderKeys.from_file(system.layout.keys / "orders.key")
        self._database: asyncpg.Connection | None = None

    @property
    def store(self) -> SandboxStore:
        return open_store(self.system.layout.sandboxes.as_uri())

    def site(self) -> str:
        """Return a site of the test's own, at which nothing waits."""
        return f"site-{next(_numbers)}"

    async def submit(self, site: str, *argv: str, **more: Any) -> list[int]:
        description = JobDescription(executable=argv[0], arguments=argv[1:], sites=(site,), **more)
        return list((await self.client.submit(description)).job_ids())

    async def kill(self, *job_ids: int) -> None:
        await self.client.kill(select([str(each) for each in job_ids]))

    async def agent(self, site: str, slots: int = 4, **settings: Any) -> "Agent":
        """Start the agent of a pilot that was sent there."""
        agent = Agent(self, f"pilot-{os.getpid()}-{next(_numbers)}", site, slots, settings)
        self.agents.append(agent)
        await agent.start()
        return agent

    async def sql(self, statement: str, *args: Any) -> list[asyncpg.Record]:
        """Run a statement; the connection is kept, since most are asked again and again."""
        if self._database is None or self._database.is_closed():
            self._database = await asyncpg.connect(self.url)
        return list(await self._database.fetch(statement, *args))

    async def close(self) -> None:
        if self._database is not None:
            await self._database.close()

    async def states(self, job_ids: list[int]) -> dict[int, str]:
        """Return the jobs' states. Those of an array have no row of their own before they are matched."""
        rows = await self.sql("select job_id, state from job where job_id = any ($1)", job_ids)
        return dict.fromkeys(job_ids, "Waiting") | {row["job_id"]: row["state"] for row in rows}

    async def until(self, job_ids: list[int], state: str, within: float = 45.0) -> None:
        """Wait until all these jobs are in that state."""

        async def all_there() -> bool:
            states = await self.states(job_ids)
            assert set(states.values()) == {state}, states
            return True

        await eventually(all_there, within)

    async def attempts(self, job_id: int) -> list[asyncpg.Record]:
        return await self.sql("select * from attempt where job_id = $1 order by epoch", job_id)


class Agent:
    """One pilot's agent: a process, its directory, its log."""

    def __init__(self, grid: Grid, pilot_id: str, site: str, slots: int, settings: dict[str, Any]) -> None:
        self.grid = grid
        self.pilot_id = pilot_id
        self.site = site
        self.slots = slots
        self.place = grid.system.layout.pilots / pilot_id
        self.token = ""
        self.memory_mb = settings.pop("memory_mb", 0)
        self.environment = settings.pop("environment", {})
        self._settings = settings
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        await self.grid.sql(
            "insert into pilot (pilot_id, site, ce, vo, dispatcher, slots) values ($1, $2, 'ce', 'local', 'none', $3)",
            self.pilot_id,
            self.site,
            self.slots,
        )
        claims = Claims(
            kind="pilot",
            owner="tests",
            group="pilot",
            vo="local",
            rights=frozenset({"generic_pilot"}),
            pilot_id=self.pilot_id,
            site=self.site,
            ce="ce",
        )
        key = load_key(self.grid.system.layout.keys / "pilots.pem")
        self.token = mint(key, claims, 3_600, clock.timestamp())
        credential = PilotCredential(self.token, self.grid.orders.of_pilot(self.pilot_id))
        write_secret(self.place / "token", credential.text, durable=False)
        write_secret(self.place / "config.toml", self._config(), durable=False)
        with (self.place / "log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "services.job_agent",
                "--config",
                str(self.place / "config.toml"),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "WMS_PILOT": self.pilot_id, **self.environment},
                start_new_session=True,
            )

    def _config(self) -> str:
        pilot = {
            "pilot_id": self.pilot_id,
            "site": self.site,
            "ce": "ce",
            "vo": "local",
            "slots": self.slots,
            "token_file": str(self.place / "token"),
            "directory": str(self.place / "jobs"),
            "isolation": os.environ["WMS_ISOLATION"],
            **self._settings,
        }
        return to_toml(
            {
                "pilot": pilot,
                "resource": {"cpu_time": 1_000_000, "memory_mb": self.memory_mb},
                "sandboxes": {"url": self.grid.system.layout.sandboxes.as_uri()},
                "kafka": self.grid.facts.kafka,
                "log": {"level": "debug"},
            }
        )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        return (self.place / "log").read_text()

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    async def ended(self, within: float = 45.0) -> int:
        """Wait for the end of the process, and return its exit code."""
        assert self._process is not None
        return await asyncio.wait_for(self._process.wait(), within)

    async def stop(self) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.signal(signal.SIGCONT)
                self.signal(signal.SIGTERM)
                self.signal(signal.SIGTERM)
        try:
            await self.ended(8)
        except TimeoutError:
            self.signal(signal.SIGKILL)
            await self.ended()

    def shepherd(self) -> psutil.Process:
        return next(
            each
            for each in psutil.Process(self.pid).children()
            if any(word.endswith("shepherd.py") for word in each.cmdline())
        )


@contextlib.asynccontextmanager
async def grid(
    root: Path, lease_seconds: float = LEASE_SECONDS, *, postgres: str = "embedded"
) -> AsyncIterator[Grid]:
    system = System(root, postgres=postgres, slots=4, durable=False, services=("job_manager", "matcher"))
    system.supervisor = quick = _Quick(system.layout.root)
    quick.lease_seconds = lease_seconds
    async with system, Client.connect(system.layout.root, timeout=30) as client:
        made = Grid(system, client)
        try:
            yield made
        finally:
            await asyncio.gather(*(agent.stop() for agent in made.agents))
            await made.close()
