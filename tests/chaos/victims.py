"""What may be killed, how to find it, and when its loss is made good."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Iterable

import asyncpg
import msgspec
import psutil

from wms.db.database import GONE
from wms.embedded.layout import SERVICES
from wms.embedded.system import System

VICTIMS = (*SERVICES, "pilot", "shepherd", "broker", "postgres")
SYNTHETIC = {"pilot", "shepherd"}
RECOVERY_LIMIT = 45.0


class Kill(msgspec.Struct, kw_only=True):
    """One process killed, and after how many seconds another did its work, and after how many a job ended."""

    victim: str
    pid: int
    at: float
    """Seconds after the beginning."""
    recovered_after: float
    progress_after: float | None = None
    killed_at: float
    """Seconds since 1970."""
    pilot: str | None = None
    """The pilot that was killed, or whose shepherd was."""


class NobodyThere(LookupError):  # noqa: N818 - an outcome
    """There is none of that kind just now."""


async def kill(victim: str, system: System, url: str, began: float) -> Kill:
    """Kill one of that kind with SIGKILL and wait until another does its work. AssertionError if none does in time."""
    pid = _find(victim, system)
    pilot = _pilot_of(pid) if victim in SYNTHETIC else None
    lost = await _leases_of(url, pilot) if pilot else ()
    # Services begin afresh when the broker is another one.
    replaced: set[int | None] = {pid}
    if victim == "broker":
        replaced |= {system.supervisor.pid_of(name) for name in SERVICES}
    at, killed_at = time.monotonic(), time.time()
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    while not await _recovered(victim, system, url, replaced, lost):
        if time.monotonic() - at > RECOVERY_LIMIT:
            raise AssertionError(
                f"{victim} (process {pid}) was killed and not replaced within {RECOVERY_LIMIT} s"
            )
        await asyncio.sleep(0.05)
    return Kill(
        victim=victim,
        pid=pid,
        at=round(at - began, 1),
        recovered_after=round(time.monotonic() - at, 2),
        killed_at=killed_at,
        pilot=pilot,
    )


def _find(victim: str, system: System) -> int:
    if victim in SYNTHETIC:
        pids = sorted(agents(system) if victim == "pilot" else shepherds(system))
        if not pids:
            raise NobodyThere(victim)
        return pids[0]
    pid = system.supervisor.pid_of(victim)
    if pid is None:
        raise NobodyThere(victim)
    return pid


def agents(system: System) -> list[int]:
    """Return the job agents of a system."""
    return [each.pid for each in _running(system) if _is_agent(each.cmdline())]


def _is_agent(command: list[str]) -> bool:
    # What starts an agent has the agent's command on its own command line.
    return "services.job_agent" in command and "services.job_agent.confinement" not in command


def shepherds(system: System) -> list[int]:
    """Return the shepherds of its agents."""
    mine = set(agents(system))
    return [each.pid for each in psutil.process_iter() if _ppid(each) in mine and _is_shepherd(each)]


def _is_shepherd(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return any(word.endswith("shepherd.py") for word in process.cmdline())
    return False


def _ppid(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return int(process.ppid())
    return 0


def _running(system: System) -> Iterable[psutil.Process]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            ours = process.environ().get("WMS_SYSTEM") == system.supervisor.system
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def payloads(system: System) -> list[int]:
    """Return every process that runs below the system's directory as a payload, or was left by one."""
    root = str(system.layout.pilots)
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if (
                process.environ().get("WMS_WORK", "").startswith(root)
                and process.status() != psutil.STATUS_ZOMBIE
            ):
                found.append(process.pid)
    return found


def _pilot_of(pid: int) -> str | None:
    """Return the pilot of that agent, or of that shepherd's agent."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        agent = psutil.Process(process.ppid()) if _is_shepherd(process) else process
        return agent.environ().get("WMS_PILOT")
    return None


async def _leases_of(url: str, pilot: str) -> tuple[tuple[int, int], ...]:
    """Return what the pilot holds."""
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch("select job_id, epoch from lease where pilot_id = $1", pilot)
        return tuple((row["job_id"], row["epoch"]) for row in rows)
    finally:
        await connection.close()


async def _recovered(
    victim: str,
    system: System,
    url: str,
    replaced: set[int | None],
    lost: tuple[tuple[int, int], ...],
) -> bool:
    try:
        if victim in SYNTHETIC:
            return not await _still_leased(url, lost)
        now = {system.supervisor.pid_of(name) for name in {*SERVICES, "broker", "postgres"}}
        return None not in now and not now & replaced and await _beating(system, url)
    except (*GONE, asyncpg.PostgresError):
        return False


async def _still_leased(url: str, lost: tuple[tuple[int, int], ...]) -> bool:
    """Whether the dead pilot's jobs are still its own."""
    connection = await asyncpg.connect(url, timeout=5)
    try:
        rows = await connection.fetch(
            "select job_id, epoch from lease where job_id = any ($1)", [job_id for job_id, _ in lost]
        )
        return bool({(row["job_id"], row["epoch"]) for row in rows} & set(lost))
    finally:
        await connection.close()


async def until_progress(url: str, since: float, patience: float) -> float | None:
    """Wait until one more job has ended than just now; return after how many seconds since `since`, or None."""
    before: int | None = None
    while time.monotonic() - since < patience:
        with contextlib.suppress(*GONE, asyncpg.PostgresError):
            connection = await asyncpg.connect(url, timeout=5)
            try:
                count = await connection.fetchval(
                    "select count(*) from attempt where outcome in ('done', 'failed')"
                )
            finally:
                await connection.close(timeout=5)
            before = count if before is None else before
            if count > before:
                return round(time.monotonic() - since, 2)
        await asyncio.sleep(0.1)
    return None


async def _beating(system: System, url: str) -> bool:
    """Whether the very process of each service beats now."""
    connection = await asyncpg.connect(url, timeout=5)
    try:
        rows = await connection.fetch(
            "select pid from service_instance where heartbeat_at > now() - interval '2 s'"
        )
        return {system.supervisor.pid_of(name) for name in SERVICES} <= {row["pid"] for row in rows}
    finally:
        await connection.close()
