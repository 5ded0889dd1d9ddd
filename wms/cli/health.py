"""`wms status` without jobs: each server and service of the system, its lag and its health."""

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from wms.cli.options import Common
from wms.cli.printing import show, show_json, show_table
from wms.cli.quantities import since
from wms.cli.session import OK, SOME_FAILED, quiet, run_async

if TYPE_CHECKING:
    from wms.client import Settings

ANSWER_SECONDS = 5.0


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One server or process, as it is now."""

    name: str
    up: bool
    pid: int | None = None
    starts: int | None = None
    """How often it was started since the system is up."""
    since: str = ""
    lag: int | None = None
    """Messages that it has still to handle."""
    note: str = ""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """A system as it is now."""

    data: str
    up: bool
    """Whether every part is."""
    kept_by: int | None
    """The process that keeps it up; None where there is none on this machine."""
    parts: tuple[Part, ...]


def show_health(common: Common) -> int:
    """Show how the system does; exit code 1 when a part is down."""
    health = run_async(look(common))
    if common.json:
        show_json(health)
    else:
        kept = (
            f"kept up by process {health.kept_by}" if health.kept_by else "nobody keeps it up: `wms up` does"
        )
        show(f"system in {health.data}: {kept}")
        show_table(("PART", "STATE", "PID>", "STARTS>", "UP FOR>", "LAG>", "WHY"), map(row, health.parts))
    return OK if health.up else SOME_FAILED


def row(part: Part) -> tuple[object, ...]:
    """Return the row of a table of parts."""
    told = (
        "-" if value is None or value == "" else value
        for value in (part.pid, part.starts, part.since, part.lag)
    )
    return (part.name, "up" if part.up else "DOWN", *told, part.note)


async def look(common: Common) -> Health:
    """Ask every part at once how it does."""
    from wms.client.settings import data_directory, read_settings
    from wms.embedded.lock import holder
    from wms.embedded.supervisor import LOCK_FILE, read_state

    quiet()
    directory = data_directory(common.data)
    settings = read_settings(directory)
    keeper = await asyncio.to_thread(holder, directory / LOCK_FILE)
    state = await asyncio.to_thread(read_state, directory) if keeper else None
    children = state.children if state else {}
    broker, services = await asyncio.gather(_broker(settings), _services(settings))
    parts = [_counted(part, children) for part in (broker, *services)]
    named = {part.name for part in parts}
    parts += [
        Part(
            name=name,
            up=child.pid is not None,
            pid=child.pid,
            starts=child.starts,
            note=child.last_error or ("" if child.pid else f"see {_relative(child.log, directory)}"),
        )
        for name, child in children.items()
        if name not in named and name != "kafka"
    ]
    return Health(data=str(directory), up=all(part.up for part in parts), kept_by=keeper, parts=tuple(parts))


def _counted(part: Part, children: dict[str, Any]) -> Part:
    names = (part.name, "kafka") if part.name == "broker" else (part.name,)
    child = next((children[name] for name in names if name in children), None)
    if child is None:
        return part
    return msgspec.structs.replace(part, pid=part.pid or child.pid, starts=child.starts)


def _relative(path: str, directory: Path) -> str:
    return os.path.relpath(path, directory) if path else ""


async def _broker(settings: "Settings") -> Part:
    from wms.bus.kafka import Kafka
    from wms.errors import Unavailable

    kafka = Kafka(settings.kafka, "wms-status")
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await kafka.start()
    except (Unavailable, TimeoutError) as error:
        return Part(name="broker", up=False, note=str(error) or f"no answer at {settings.kafka.bootstrap}")
    finally:
        await kafka.close()
    return Part(name="broker", up=True, note=f"{settings.kafka.bootstrap}, cluster {kafka.cluster_id}")


async def _services(settings: "Settings") -> list[Part]:
    """Return Postgres and what the services have last written into it."""
    from wms.db import instance
    from wms.db.database import GONE, Database
    from wms.errors import Unavailable

    if settings.postgres is None:
        return []
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            db = await Database.connect(settings.postgres.url, size=1, application="wms-status")
    except (Unavailable, TimeoutError) as error:
        return [Part(name="postgres", up=False, note=str(error) or "no answer")]
    try:
        async with db.transaction() as tx:
            now = await tx.now()
            rows = await instance.instances(tx)
    except GONE as error:
        return [Part(name="postgres", up=False, note=repr(error))]
    finally:
        await db.close()
    newest = {row["service"]: row for row in rows if not row["alive"]} | {
        row["service"]: row for row in rows if row["alive"]
    }
    # A service that runs somewhere is up; of the dead only those are of interest that no other instance replaces.
    told = [row for row in rows if row["alive"] or newest[row["service"]] is row]
    return [Part(name="postgres", up=True), *(_service(row, now) for row in told)]


def _service(row: Any, now: Any) -> Part:
    health = msgspec.json.decode(row["health"])
    lag = sum(health.pop("lag", {}).values())
    handled = sum(health.pop("handled", {}).values())
    stalled = sum(each["stalled"] for parts in health.pop("partitions", {}).values() for each in parts)
    facts = [*([f"NOT SERVED: {stalled} partitions"] if stalled else []), f"handled {handled:,}"]
    facts += [f"{name} {value}" for name, value in health.items()]
    return Part(
        name=row["service"],
        up=row["alive"],
        pid=row["pid"],
        since=since(row["started_at"], now) if row["alive"] else "",
        lag=lag,
        note=", ".join(facts) if row["alive"] else f"last heard of {since(row['heartbeat_at'], now)} ago",
    )
