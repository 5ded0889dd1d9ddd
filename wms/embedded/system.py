"""A complete system on one machine: its servers, schema, keys and services, which are kept running until it is stopped."""

import asyncio
import contextlib
import os
import signal
import time
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from wms.bus.unix_socket import SCHEME
from wms.db import instance
from wms.db.database import Database
from wms.db.migrate import migrate
from wms.dispatch.confinement import Confinement, Mode
from wms.dispatch.local import LocalDispatcher
from wms.embedded import layout as plan
from wms.embedded.apache_kafka import ApacheKafka
from wms.embedded.kafka_broker import KafkaBroker
from wms.embedded.keys_and_tokens import LIFETIME_SECONDS, ensure_identity, renew_tokens
from wms.embedded.layout import SERVICES, ConfigValues, Layout
from wms.embedded.lifeline import Lifeline
from wms.embedded.network_namespace import isolation
from wms.embedded.postgres import Postgres
from wms.embedded.server import KafkaServer, settle_port
from wms.embedded.supervisor import Supervisor, SupervisorState
from wms.embedded.watch import SystemWatch
from wms.errors import Rejected, Unavailable
from wms.files import Table

SERVICES_READY_WITHIN = 60.0
PILOTS_REPORT_WITHIN = 5.0
"""The seconds in which pilots report and end, once their payloads have ended."""
# The embedded broker keeps every message in memory and drops none, so it is restarted before it uses up the machine's memory.
# Nothing is lost, since Postgres is the truth.
BROKER_RSS_LIMIT = 2 * 1024**3
BROKER_LOOK_SECONDS = 10.0


class System:
    """A complete system with its data in `data_dir`, which ends with this process. Use `start` and `stop`, or `async with`.

    `kafka` is "embedded", "loopback" (embedded, but open to every user of the machine), "apache", or HOST:PORT of a running broker.
    `postgres` is "embedded" or a URL. `slots` is how many payloads run at a time (None: one for each CPU). `services` are the names of the
    services to run. `pilots` are settings of the service `pilot_submitter`: by default its pilots use only the gateway.
    `token_seconds` is how long tokens are valid. `durable=False` is for tests: a crash of the machine may lose data.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        kafka: str = "embedded",
        postgres: str = "embedded",
        slots: int | None = None,
        durable: bool = True,
        log_level: str = "info",
        services: tuple[str, ...] = SERVICES,
        pilots: Table | None = None,
        token_seconds: float = LIFETIME_SECONDS,
    ) -> None:
        self.layout = Layout(Path(data_dir).absolute())
        self.supervisor = Supervisor(self.layout.root)
        self.postgres: Postgres | None = None
        self.broker: KafkaServer | None = None
        self.facts: ConfigValues | None = None
        self._services = services
        self._chosen = (kafka, postgres)
        self._slots = slots or plan.default_slots()
        self._durable = durable
        self._log_level = log_level
        self._pilots = pilots or {}
        self._token_seconds = token_seconds
        self._is_hurried = asyncio.Event()

    async def start(self) -> None:
        """Start all processes and wait until each service has sent a heartbeat.

        If that fails, stop all processes again and raise the error: Rejected or Unavailable.
        """
        await self.supervisor.open()
        # The directory may have existed before with a mode that lets other users in.
        self.layout.root.chmod(0o700)
        self._make_files()
        try:
            ensure_identity(self.layout, self._token_seconds)
            renew = partial(renew_tokens, self.layout, self._token_seconds)
            self.supervisor.loops.start("renew tokens", renew)
            kafka = await self._start_kafka(self._chosen[0])
            url = await self._start_postgres(self._chosen[1])
            await migrate(url)
            self.facts = ConfigValues(
                layout=self.layout,
                kafka=kafka,
                postgres_url=url,
                role_urls=await self.postgres.role_urls("wms") if self.postgres is not None else {},
                slots=self._slots,
                gateway_port=self._gateway_port(),
                log_level=self._log_level,
                pilots=self._pilots,
            )
            plan.write_client(self.facts)
            for name in self._services:
                await self.supervisor.add(plan.service(name, self.facts))
            await self.wait_beating()
        except BaseException:
            await self.stop()
            raise
        self._watch(self.facts)

    async def stop(self) -> None:
        """Stop the pilots on this machine, then the services and the servers. Pilots first end their payloads and return their jobs.

        Payloads have `stop_seconds` for it, unless `hurry` is called.
        """
        for loop in ("renew tokens", "bound the broker", "watch"):
            await self.supervisor.loops.stop(loop)
        await self._drain_pilots()
        await self.supervisor.close()

    def _make_files(self) -> None:
        """Make the directory of files by URL, which belongs to the account of pilots."""
        self.layout.files.mkdir(mode=0o700, exist_ok=True)
        if (owner := Confinement(mode="auto").owner) is not None:
            os.chown(self.layout.files, owner, owner)

    def _watch(self, facts: ConfigValues) -> None:
        """Start the loops that look for hung processes, and for an embedded broker that uses too much memory."""
        watch = SystemWatch(
            self.supervisor,
            facts.postgres_url,
            self._services,
            postgres=self.postgres is not None,
            broker=self.broker,
        )
        self.supervisor.loops.start("watch", watch.run)
        if isinstance(self.broker, KafkaBroker):
            self.supervisor.loops.start("bound the broker", partial(self._bound_broker, self.broker))

    @property
    def stop_seconds(self) -> float:
        """The seconds that running payloads have to end when the system is stopped."""
        return plan.stop_seconds_of(self._pilots)

    def hurry(self) -> None:
        """End running payloads at once, if the system is being stopped."""
        self._is_hurried.set()

    async def _drain_pilots(self) -> None:
        """Tell the pilots to end their payloads and return their jobs, and wait until they have ended, while the job manager still runs."""
        if self.facts is None:
            return
        dispatcher = LocalDispatcher(self.layout.pilots, (), {})
        # The second time a pilot is told, it kills its payloads.
        for seconds in (self.stop_seconds + PILOTS_REPORT_WITHIN, PILOTS_REPORT_WITHIN):
            await dispatcher.cancel(await dispatcher.alive())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    if await self._have_ended(dispatcher):
                        return
            self._is_hurried.clear()

    async def _have_ended(self, dispatcher: LocalDispatcher) -> bool:
        """Wait until all pilots have ended; return False if the system is hurried before."""
        while await dispatcher.alive():
            if self._is_hurried.is_set():
                return False
            await asyncio.sleep(0.05)
        return True

    async def until_told(self) -> None:
        """Wait until this process gets SIGTERM or SIGINT. Both signals then no longer end the process by themselves; later ones hurry its end."""
        told = asyncio.Event()

        def tell() -> None:
            if told.is_set():
                self.hurry()
            told.set()

        loop = asyncio.get_running_loop()
        for sig in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sig, tell)
        await told.wait()

    async def wait_beating(self) -> None:
        """Wait until each running service process has sent a heartbeat to the database.

        Raise Unavailable, with the end of a log, if a service dies repeatedly or sends none within 60 seconds.
        """
        assert self.facts is not None, "start() comes first"
        deadline = time.monotonic() + SERVICES_READY_WITHIN
        db = await Database.connect(self.facts.postgres_url, size=1, application="wms up")
        try:
            while missing := [name for name in self._services if name not in await self._beating(db)]:
                self._complain_if_hopeless(missing, deadline)
                await asyncio.sleep(0.05)
        finally:
            await db.close()

    def state(self) -> SupervisorState:
        """Return the present state of the system's servers and services, as the state file has it."""
        return self.supervisor.state()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _start_postgres(self, chosen: str) -> str:
        if chosen != "embedded":
            return chosen
        self.postgres = Postgres(self.layout.server("postgres"), durable=self._durable)
        await self.supervisor.add(self.postgres)
        return await self.postgres.ensure_database("wms")

    async def _start_kafka(self, chosen: str) -> Table:
        """Start the chosen Kafka broker, unless it runs elsewhere. Return the settings by which clients connect to it.

        Raise Rejected if `chosen` is no known value, and Unavailable if the broker fails to start.
        """
        match chosen:
            case "embedded":
                self.broker = KafkaBroker(self.layout.server("broker"), isolate=isolation())
            case "loopback":
                self.broker = KafkaBroker(self.layout.server("broker"))
            case "apache":
                self.broker = ApacheKafka(self.layout.server("kafka"), closed=True)
            case address if address.rpartition(":")[2].isdigit():
                return {"bootstrap": address}
            case _:
                raise Rejected(
                    "BAD_KAFKA",
                    f"no broker is named {chosen!r}",
                    "say embedded, loopback, apache or HOST:PORT",
                )
        await self.supervisor.add(self.broker)
        told = self.broker.access
        # The embedded broker has no idempotent producers, and a new message does not end a fetch that waits.
        return (
            {**told, "idempotent": False, "fetch_wait_ms": 0}
            if isinstance(self.broker, KafkaBroker)
            else told
        )

    def _gateway_port(self) -> int:
        """Return a free port for the gateway, the same at each start if possible."""
        directory = self.layout.service("gateway")
        for each in (directory.parent, directory):
            each.mkdir(mode=0o700, exist_ok=True)
        return settle_port(directory, 0)

    @property
    def isolation(self) -> Mode:
        """The mode by which payloads are isolated and pilots confined: `auto`, `required` or `none`."""
        return plan.isolation_of(self._pilots)

    @property
    def gateway_url(self) -> str:
        """The base URL of the gateway, which any user of this machine can reach but needs a token to use.

        Empty before the start, or if the system has no gateway.
        """
        return self.facts.gateway_url if self.facts and "gateway" in self._services else ""

    @property
    def exposed(self) -> str:
        """A warning about what other users of this machine can reach without a token; empty if nothing."""
        if isinstance(self.broker, KafkaBroker) and not self.broker.bootstrap.startswith(SCHEME):
            return "every user of this machine can reach the broker, read all messages and forge replies"
        return ""

    async def _beating(self, db: Database) -> set[str]:
        async with db.transaction() as tx:
            rows = await instance.instances(tx)
        alive = {(row["service"], row["pid"]) for row in rows if row["alive"]}
        return {name for name in self._services if (name, self.supervisor.pid_of(name)) in alive}

    def _complain_if_hopeless(self, missing: list[str], deadline: float) -> None:
        children = self.supervisor.state().children
        dying = [name for name in missing if children[name].starts > 3]
        if dying or time.monotonic() > deadline:
            name = (dying or missing)[0]
            end = self.supervisor.log_tail(name)
            raise Unavailable(f"{name} does not run; the end of {children[name].log}: {end}")

    async def _bound_broker(self, broker: KafkaBroker) -> None:
        while True:
            await asyncio.sleep(BROKER_LOOK_SECONDS)
            with contextlib.suppress(psutil.Error):
                if broker.pid and psutil.Process(broker.pid).memory_info().rss > BROKER_RSS_LIMIT:
                    await self.supervisor.restart(broker.name, f"it holds {BROKER_RSS_LIMIT >> 20} MiB")


async def down(data_dir: Path, *, within: float = 60.0, now: bool = False) -> bool:
    """Stop the system in `data_dir`, which another process runs, by SIGTERM, and wait until that process has ended. Return False if none was running.

    `now` says that running payloads are killed at once.
    Raise Unavailable if it does not end within `within` seconds.
    """
    try:
        lifeline = Lifeline.open(Layout(data_dir).lock)
    except Unavailable:
        return False
    try:
        for sent in (signal.SIGTERM, signal.SIGINT) if now else (signal.SIGTERM,):
            os.kill(lifeline.pid, sent)
        async with asyncio.timeout(within):
            await lifeline.wait()
    except TimeoutError:
        raise Unavailable(f"process {lifeline.pid} was told to end and has not within {within:g} s") from None
    finally:
        lifeline.close()
    return True
