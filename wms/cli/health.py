"""`wms status` without jobs: the health of each server and service of the system, its lag in messages, and unserved partitions."""

import asyncio
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from wms.cli.blocked_messages import BlockedMessageLine, in_words, unhandled
from wms.cli.options import CommonOptions
from wms.cli.printing import note, show, show_json, show_table
from wms.cli.quantities import since, span
from wms.cli.session import OK, SOME_FAILED, quiet, run_async
from wms.cli.table import ALWAYS, TableColumn
from wms.runtime.service_health import (
    Heartbeat,
    LoopHealth,
    PartitionLine,
    busy,
    partitions,
    problems,
    summed_up,
    worst_round_trip,
)

if TYPE_CHECKING:
    from wms.client import ClientSettings
    from wms.db.database import Database, Transaction
    from wms.embedded.supervisor import SupervisorState

ANSWER_SECONDS = 5.0
MOST_CONNECTIONS = 0.9
"""Which fraction of Postgres's allowed connections may be in use before a problem is shown. Beyond it, a new service may get none."""
PARTS = (
    TableColumn("PART", ALWAYS),
    TableColumn("STATE", 1),
    TableColumn("PID>", 4),
    TableColumn("STARTS>", 3),
    TableColumn("UP FOR>", 2),
    TableColumn("LAG>", 1),
    TableColumn("PROBE>", 2),
    TableColumn("HELD>", 2),
    TableColumn("WHY", 1, "wrap", 24),
)


class ProcessHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The health of one server or service of the system, as `wms status` shows it in a row."""

    name: str
    up: bool
    """Whether the process runs and serves all its partitions."""
    running: bool = True
    pid: int | None = None
    starts: int | None = None
    """How often the supervisor has started the process since the system was started; None if unknown."""
    since: str = ""
    lag: int | None = None
    """How many messages wait for the process in its partitions; None if it reads no messages."""
    probe_ms: float | None = None
    """The longest round trip of a probe through the process's partitions, in milliseconds.

    For an unserved partition it is the time without a probe. None if there is no probe.
    """
    loop: LoopHealth = LoopHealth()
    """The longest times for which one callback kept the process's event loop."""
    note: str = ""
    busy: str = ""
    """A text on a slow batch of messages that the process still handles; empty if there is none."""
    problems: tuple[str, ...] = ()
    """Everything that is wrong with the process, as texts for people."""
    partitions: tuple[PartitionLine, ...] = ()


class SystemHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The health of a whole system: of its servers and services, and messages that block partitions."""

    data: str
    up: bool
    """Whether every process is up."""
    kept_by: int | None
    """The pid of the supervisor, which restarts processes that die; None if there is none on this machine."""
    parts: tuple[ProcessHealth, ...]
    sees_services: bool = True
    """Whether the settings name the database, where the services write their heartbeats. If not, services are not shown."""
    blocked: tuple[BlockedMessageLine, ...] = ()
    """The messages that block their partitions, because a service cannot get past them."""
    gaps: tuple[str, ...] = ()
    """The ranges of messages that a service did not handle and no operator has looked at, as texts for people."""


def show_health(common: CommonOptions) -> int:
    """Print the health of the system. Return exit code 1 if a process is down or a partition is not served, else 0."""
    health = run_async(look(common))
    if common.json:
        show_json(health)
        return OK if health.up else SOME_FAILED
    kept = "nothing supervises it on this machine: `wms up` does" if health.sees_services else ""
    kept = f"kept up by process {health.kept_by}" if health.kept_by else kept
    show(f"system in {health.data}" + (f": {kept}" if kept else ""))
    show_table(PARTS, map(row, health.parts))
    if not health.sees_services:
        note("how the services do is told to operators: the settings name no database")
    if health.blocked:
        show("\nnot served; the next message of each partition, with its offset:")
        for each in health.blocked:
            show(f"  {in_words(each)}")
        show("`wms dead-letters skip CONSUMER TOPIC/PARTITION OFFSET --reason WHY` sets one aside")
    if health.gaps:
        show("\nnot handled, until an operator looks at them:")
        for gap in health.gaps:
            show(f"  {gap}")
        show("`wms log-gaps` lists them, with what is kept aside")
    return OK if health.up else SOME_FAILED


def row(part: ProcessHealth) -> tuple[object, ...]:
    """Return the table row that shows a server or service."""
    probe = "" if part.probe_ms is None else _milliseconds(part.probe_ms)
    held = "" if part.loop.last_minute is None else _milliseconds(part.loop.last_minute.processor_ms)
    told = (
        "-" if value is None or value == "" else value
        for value in (part.pid, part.starts, part.since, part.lag, probe, held)
    )
    return (
        part.name,
        _state(part),
        *told,
        summed_up(part.problems) or part.busy or part.loop.in_words() or part.note,
    )


def _state(part: ProcessHealth) -> str:
    if part.up:
        return "busy" if part.busy else "up"
    return "STUCK" if part.running else "DOWN"


def _milliseconds(duration: float) -> str:
    return f"{duration:.0f}ms" if duration < 10_000 else span(duration / 1_000)


async def look(common: CommonOptions) -> SystemHealth:
    """Query all servers and services concurrently, and return their health."""
    from wms.client.settings import data_directory, read_settings
    from wms.embedded.lock import holder
    from wms.embedded.supervisor import LOCK_FILE, read_state

    quiet()
    directory = data_directory(common.data)
    settings = read_settings(directory)
    keeper = await asyncio.to_thread(holder, directory / LOCK_FILE)
    state = await asyncio.to_thread(read_state, directory) if keeper else None
    reach = _gateway if settings.gateway else _broker
    door, (services, gaps) = await asyncio.gather(reach(settings), _services(settings))
    parts = [_counted(part, state) for part in (door, *services)]
    if state is not None:
        parts = [*_supervisor(state), *parts, *_children(state, parts, directory)]
    silent = [line for part in parts for line in part.partitions if not line.served]
    blocked = await _blocked(settings, silent) if silent and door.up else []
    parts = [_waiting(part, blocked) for part in parts]
    return SystemHealth(
        data=str(directory),
        up=all(part.up for part in parts),
        kept_by=keeper,
        parts=tuple(parts),
        sees_services=settings.postgres is not None,
        blocked=tuple(blocked),
        gaps=tuple(gaps),
    )


def _waiting(part: ProcessHealth, blocked: Sequence[BlockedMessageLine]) -> ProcessHealth:
    """Return the service's health with a lag of at least the number of messages that block its partitions.

    The reader of a blocked partition reports only an outdated lag.
    """
    consumers = {line.consumer for line in part.partitions}
    known = sum(each.consumer in consumers for each in blocked)
    return msgspec.structs.replace(part, lag=max(part.lag or 0, known)) if known else part


def _counted(part: ProcessHealth, state: "SupervisorState | None") -> ProcessHealth:
    names = (part.name, "kafka") if part.name == "broker" else (part.name,)
    child = next((state.children[name] for name in names if name in state.children), None) if state else None
    if child is None:
        return part
    return msgspec.structs.replace(part, pid=part.pid or child.pid, starts=child.starts)


def _supervisor(state: "SupervisorState") -> Iterable[ProcessHealth]:
    """Yield the supervisor's health if its loops fail or it no longer writes its state file; else nothing."""
    from wms.embedded.supervisor import STALE_AFTER_SECONDS
    from wms.runtime import clock

    age = clock.timestamp() - state.written_at
    wrong = [f"{loop} failed and goes on: {error}" for loop, error in state.failing.items()]
    if state.written_at and age > STALE_AFTER_SECONDS:
        wrong.insert(0, f"it has not written its state for {span(age)}: it hangs, or its disk is full")
    if wrong:
        yield ProcessHealth(name="supervisor", up=False, pid=state.pid, problems=tuple(wrong))


def _children(
    state: "SupervisorState", parts: Sequence[ProcessHealth], directory: Path
) -> list[ProcessHealth]:
    """Return the health of those processes of the supervisor that are not among `parts`. `directory` is the data directory."""
    named = {part.name for part in parts}
    return [
        ProcessHealth(
            name=name,
            up=child.pid is not None and name not in _BEATING,
            running=child.pid is not None,
            pid=child.pid,
            starts=child.starts,
            note=child.last_error or _no_heartbeat(child.pid, _relative(child.log, directory)),
        )
        for name, child in state.children.items()
        if name not in named and name not in ("kafka", "broker", "postgres")
    ]


_BEATING = frozenset(
    {"job_manager", "matcher", "advertiser", "pilot_submitter", "agreement", "resource_broker", "gateway"}
)
"""The services that send heartbeats. If such a service runs without a heartbeat, it counts as down."""


def _no_heartbeat(pid: int | None, log: str) -> str:
    return f"no heartbeat; see {log}" if pid else f"see {log}"


def _relative(path: str, directory: Path) -> str:
    return os.path.relpath(path, directory) if path else ""


async def _gateway(settings: "ClientSettings") -> ProcessHealth:
    from wms.client.chosen_channel import channel_of
    from wms.errors import Unavailable

    assert settings.gateway is not None
    channel = channel_of(settings)
    try:
        await channel.open(ANSWER_SECONDS)
    except Unavailable as error:
        return ProcessHealth(name="gateway", up=False, running=False, note=str(error))
    await channel.close()
    return ProcessHealth(name="gateway", up=True, note=settings.gateway.url)


async def _broker(settings: "ClientSettings") -> ProcessHealth:
    from wms.bus.kafka import Kafka
    from wms.errors import Unavailable

    kafka = Kafka(settings.kafka, "wms-status")
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await kafka.start()
    except (Unavailable, TimeoutError) as error:
        why = str(error) or f"no answer at {settings.kafka.bootstrap}"
        return ProcessHealth(name="broker", up=False, running=False, note=why)
    finally:
        await kafka.close()
    return ProcessHealth(
        name="broker", up=True, note=f"{settings.kafka.bootstrap}, cluster {kafka.cluster_id}"
    )


async def _services(settings: "ClientSettings") -> tuple[list[ProcessHealth], list[str]]:
    """Return the health of Postgres, and of the services by the heartbeats that they write there; and the gaps in their logs.

    Both are empty if the settings name no database.
    """
    from wms.db.database import GONE, Database
    from wms.errors import Unavailable

    if settings.postgres is None:
        return [], []
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            db = await Database.connect(settings.postgres.url, size=1, application="wms-status")
    except (Unavailable, TimeoutError) as error:
        return [ProcessHealth(name="postgres", up=False, running=False, note=str(error) or "no answer")], []
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await _told_by(db)
    except GONE as error:
        return [ProcessHealth(name="postgres", up=False, running=False, note=repr(error))], []
    finally:
        await db.close()


async def _told_by(db: "Database") -> tuple[list[ProcessHealth], list[str]]:
    from wms.cli.log_gaps import in_words
    from wms.db import instance, log_gap

    async with db.transaction() as tx:
        now = await tx.now()
        beats = [_heartbeat(each) for each in await instance.instances(tx)]
        parts = [await _postgres(tx), *service_parts(beats, now), *await _traffic(tx)]
        return parts, [in_words(each) for each in await log_gap.page(tx)]


async def _postgres(tx: "Transaction") -> ProcessHealth:
    from wms.db import health

    found = await health.connections(tx)
    told = f"{found['open']} of {found['most']} connections"
    many = found["open"] > MOST_CONNECTIONS * found["most"]
    return ProcessHealth(name="postgres", up=not many, note=told, problems=(told,) if many else ())


async def _traffic(tx: "Transaction") -> list[ProcessHealth]:
    """Return the health of the outbox if it has messages that nobody sends, and of the pilots if there are any."""
    from wms.db import health

    parts = []
    unsent, pilots = await health.outbox(tx), await health.pilots(tx)
    if unsent["parcels"]:
        wrong = f"no relay sends: the oldest is due for {span(unsent['age'])}"
        parts.append(ProcessHealth(name="outbox", up=False, lag=unsent["parcels"], problems=(wrong,)))
    if pilots["pilots"]:
        wrong = f"{pilots['unheard']} run and never reached us: can they reach the broker?"
        told = f"{pilots['pilots']:,} there, {pilots['running']:,} running, {pilots['silent']:,} silent for a minute"
        bad = (wrong,) if pilots["unheard"] else ()
        parts.append(ProcessHealth(name="pilots", up=not bad, note=told, problems=bad))
    return parts


def _heartbeat(row: Any) -> Heartbeat:
    health = msgspec.json.decode(row["health"])
    names = ("service", "alive", "pid", "started_at", "heartbeat_at")
    return Heartbeat(health=health, **{name: row[name] for name in names})


def service_parts(beats: Sequence[Heartbeat], now: Any) -> list[ProcessHealth]:
    """Return the health of each living instance of each service, by heartbeats. A service without a living instance has one entry as dead.

    The advertisers of each owner of a token are a service of their own.
    """
    parts: list[ProcessHealth] = []
    for kind in sorted({beat.kind() for beat in beats}):
        mine = [beat for beat in beats if beat.kind() == kind]
        living = [beat for beat in mine if beat.alive]
        lines = partitions(living, now)
        # A problem of a partition is shown once, with the first instance of its service.
        for number, beat in enumerate(living):
            parts.append(_service(beat, lines if number == 0 else [], now))
        if not living:
            parts.append(_dead(max(mine, key=lambda beat: beat.heartbeat_at), now))
    return parts


def _service(beat: Heartbeat, lines: list[PartitionLine], now: Any) -> ProcessHealth:
    wrong = problems([beat], lines)
    return ProcessHealth(
        name=beat.service,
        up=not wrong,
        pid=beat.pid,
        since=since(beat.started_at, now),
        lag=beat.lag(),
        probe_ms=worst_round_trip(lines),
        loop=beat.loop(),
        note=", ".join((f"handled {beat.handled():,}", *beat.facts())),
        busy=busy(lines),
        problems=tuple(wrong),
        partitions=tuple(lines),
    )


def _dead(beat: Heartbeat, now: Any) -> ProcessHealth:
    _, owner = beat.kind()
    why = f"no heartbeat for {since(beat.heartbeat_at, now)}" + (f", owner {owner}" if owner else "")
    return ProcessHealth(
        name=beat.service, up=False, running=False, pid=beat.pid, lag=beat.lag() or None, problems=(why,)
    )


async def _blocked(settings: "ClientSettings", silent: Sequence[PartitionLine]) -> list[BlockedMessageLine]:
    """Return the messages that block the partitions `silent`; empty if the database or the broker cannot be reached."""
    from wms.bus.kafka import Kafka
    from wms.db.database import GONE, Database
    from wms.errors import Unavailable

    if settings.postgres is None:
        return []
    kafka = Kafka(settings.kafka, "wms-status")
    try:
        db = await Database.connect(settings.postgres.url, size=1, application="wms-status")
        try:
            await kafka.start()
            return await unhandled(db, kafka, silent)
        finally:
            await kafka.close()
            await db.close()
    except (*GONE, Unavailable):
        return []
