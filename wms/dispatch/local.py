"""Pilots as processes of this machine, each in a directory of its own that tells all about it.

The directory holds the agent's configuration and token (0600), its log, and a file with the process's number and start
time, by which the process is found again after the dispatcher's own end and never taken for another's.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import psutil

from wms.dispatch.port import Order, Sighting
from wms.files import write_secret
from wms.ids import PilotId

KEPT_DIRECTORIES = 100
"""Directories of ended pilots that stay for their logs; the oldest go first."""


class _Mark(msgspec.Struct, frozen=True):
    """Which process a pilot is."""

    pid: int
    started_at: float


class LocalDispatcher:
    """Starts `argv CONFIG` below `directory` for each pilot, with `environment` and nothing else of ours."""

    def __init__(self, directory: Path, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        self._directory = directory
        self._argv = tuple(argv)
        self._environment = dict(environment)
        self._children: dict[PilotId, subprocess.Popen[bytes]] = {}

    async def send(self, orders: Sequence[Order]) -> list[Sighting]:
        """Start the pilots' processes."""
        return await asyncio.to_thread(lambda: [self._start(order) for order in orders])

    async def follow(self, pilot_ids: Sequence[PilotId]) -> list[Sighting]:
        """Look at the pilots' processes."""
        return await asyncio.to_thread(lambda: [self._look(pilot_id) for pilot_id in pilot_ids])

    async def cancel(self, pilot_ids: Sequence[PilotId]) -> None:
        """Ask the pilots to end: their agents drain."""
        for pilot_id in pilot_ids:
            process = self._process(pilot_id)
            if process is not None:
                process.send_signal(signal.SIGTERM)

    async def alive(self) -> list[PilotId]:
        """Return the pilots whose processes live, whoever started them."""
        return await asyncio.to_thread(self._alive)

    async def tidy(self) -> None:
        """Remove the directories of pilots that ended long ago."""
        await asyncio.to_thread(self._tidy)

    def _start(self, order: Order) -> Sighting:
        place = self._directory / order.pilot_id
        try:
            place.mkdir(parents=True, mode=0o700)
            write_secret(place / "token", order.token, durable=False)
            config = place / "config.toml"
            write_secret(config, order.config, durable=False)
            with (place / "log").open("ab") as log:
                child = subprocess.Popen(
                    [*self._argv, str(config)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=place,
                    env={**self._environment, "WMS_PILOT": order.pilot_id},
                    start_new_session=True,
                )
            mark = _Mark(child.pid, psutil.Process(child.pid).create_time())
            write_secret(place / "process", msgspec.json.encode(mark).decode(), durable=False)
        except (OSError, psutil.Error) as error:
            return Sighting(pilot_id=order.pilot_id, state="Failed", reason=f"not started: {error}")
        self._children[order.pilot_id] = child
        return Sighting(pilot_id=order.pilot_id, state="Submitted", reference=str(child.pid))

    def _look(self, pilot_id: PilotId) -> Sighting:
        code = self._exit_code(pilot_id)
        if code is not None:
            (self._directory / pilot_id / "token").unlink(missing_ok=True)
            return _ended(pilot_id, code, self._last_line(pilot_id))
        # A child of ours that is not reaped yet runs, or is about to tell how it ended.
        if pilot_id in self._children or self._process(pilot_id) is not None:
            return Sighting(pilot_id=pilot_id, state="Running")
        return Sighting(pilot_id=pilot_id, state="Aborted", reason="no such process")

    def _exit_code(self, pilot_id: PilotId) -> int | None:
        child = self._children.get(pilot_id)
        code = child.poll() if child is not None else None
        if code is not None:
            del self._children[pilot_id]
        return code

    def _process(self, pilot_id: PilotId) -> psutil.Process | None:
        place = self._directory / pilot_id
        if place.is_dir() and not (place / "process").exists():
            # Whoever started it died before its number was written: a living pilot must not be taken for dead.
            return _bearing(pilot_id)
        try:
            mark = msgspec.json.decode((self._directory / pilot_id / "process").read_bytes(), type=_Mark)
            process = psutil.Process(mark.pid)
            same = abs(process.create_time() - mark.started_at) < 1.0
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except (OSError, msgspec.DecodeError, psutil.Error):
            return None

    def _last_line(self, pilot_id: PilotId) -> str:
        try:
            with (self._directory / pilot_id / "log").open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - 2_000))
                lines = log.read().decode("utf-8", "replace").split("\n")
        except OSError:
            return ""
        return next((line[:300] for line in reversed(lines) if line.strip()), "")

    def _alive(self) -> list[PilotId]:
        if not self._directory.is_dir():
            return []
        ids = (PilotId(place.name) for place in self._directory.iterdir())
        return [pilot_id for pilot_id in ids if self._process(pilot_id) is not None]

    def _tidy(self) -> None:
        if not self._directory.is_dir():
            return
        ended = [place for place in self._directory.iterdir() if self._process(PilotId(place.name)) is None]
        ended.sort(key=lambda place: place.stat().st_mtime)
        for place in ended[:-KEPT_DIRECTORIES]:
            shutil.rmtree(place, ignore_errors=True)


def _bearing(pilot_id: PilotId) -> psutil.Process | None:
    """Return a living process that carries the pilot's id in its environment."""
    for process in psutil.process_iter():
        try:
            named = process.environ().get("WMS_PILOT") == pilot_id
            if named and process.status() != psutil.STATUS_ZOMBIE:
                return process
        except (OSError, psutil.Error):
            continue
    return None


def _ended(pilot_id: PilotId, code: int, last_line: str) -> Sighting:
    if code == 0:
        return Sighting(pilot_id=pilot_id, state="Done")
    how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return Sighting(pilot_id=pilot_id, state="Failed", reason=f"{how}: {last_line}" if last_line else how)


def agent_argv() -> list[str]:
    """Return how this Python starts a job agent."""
    return [sys.executable, "-m", "services.job_agent", "--config"]
