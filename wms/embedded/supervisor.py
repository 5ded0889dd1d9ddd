"""The supervisor: restarts servers when they die, with a growing pause if that happens repeatedly, and writes a state file."""

import asyncio
import contextlib
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import structlog

from wms.embedded.leftover_processes import VARIABLE, sweep, system_id
from wms.embedded.lock import DirectoryLock
from wms.embedded.loops import RestartedLoops
from wms.embedded.process import tail
from wms.embedded.server import Server
from wms.files import write_secret
from wms.runtime import clock

log = structlog.get_logger()

LOCK_FILE, STATE_FILE = "up.lock", "state.json"
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
CALM = 10.0
SWEEP_GRACE = 2.0
RECORD_SECONDS = 2.0
STALE_AFTER_SECONDS = 10.0
"""If a state file is older than this, in seconds, its supervisor hangs, has died or cannot write."""


class ChildState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one server. `starts` counts its starts. `last_exit` is its last exit code, or minus the number of the signal that ended it.

    `pid` is None while it does not run.
    """

    pid: int | None = None
    starts: int = 0
    last_exit: int | None = None
    last_error: str = ""
    log: str = ""


class SupervisorState(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of the state file: the supervisor's pid, the system's id, and the state of each server, in the order of their starts."""

    pid: int
    system: str
    children: dict[str, ChildState]
    written_at: float = 0.0
    """The time when the file was written, in seconds since 1970."""
    failing: dict[str, str] = {}
    """The last error of each of the supervisor's own loops that failed within the last 30 s, by name of the loop."""


class Supervisor:
    """Runs the servers of one data directory, and restarts them when they die. A lock allows one supervisor for each directory."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = Path(data_dir).absolute()
        self.system = system_id(self.data_dir)
        self._lock = DirectoryLock(self.data_dir / LOCK_FILE)
        self._servers: dict[str, Server] = {}
        self._states: dict[str, ChildState] = {}
        self.loops = RestartedLoops()

    async def open(self) -> None:
        """Lock the data directory, and end processes that an earlier run left. This must be the first call.

        Raise Rejected if another supervisor holds the lock.
        """
        self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock.acquire()
        if swept := await sweep(self.system, grace=SWEEP_GRACE):
            log.info("leftovers.ended", count=swept)
        self._record()
        self.loops.start("record", self._record_on)

    async def add(self, server: Server) -> None:
        """Start a server and wait until it is ready; from then on restart it whenever it dies. If this first start fails, raise its error."""
        assert self._lock.held, "open() comes first"
        assert server.name not in self._servers, server.name
        self._servers[server.name] = server
        # Its descendants inherit it, so that a later run of the supervisor finds them.
        server.environment[VARIABLE] = self.system
        await self._start(server)
        self.loops.start(f"keep {server.name}", partial(self._keep, server))

    def state(self) -> SupervisorState:
        """Return the state of all servers now."""
        return SupervisorState(
            pid=os.getpid(),
            system=self.system,
            children=dict(self._states),
            written_at=clock.timestamp(),
            failing=self.loops.failing(),
        )

    async def restart(self, name: str, why: str) -> None:
        """Kill the server of this name, because it does not work; it is then restarted. `why` goes into the log and the state file."""
        log.warning("server.killed", server=name, why=why)
        self._note(name, last_error=why)
        await self._servers[name].kill()

    def pid_of(self, name: str) -> int | None:
        """Return the process id of the server of this name; None while it is not running."""
        return self._servers[name].pid

    def log_tail(self, name: str) -> str:
        """Return the last 15 lines of the log of the server of this name."""
        return tail(self._servers[name].log_path)

    async def close(self) -> None:
        """Stop all servers, the last started first. Then end all other processes of the system, and unlock the data directory."""
        for name, server in reversed(self._servers.items()):
            await self.loops.stop(f"keep {name}")
            with contextlib.suppress(ProcessLookupError):
                await server.stop()
            self._note(name, pid=None)
        await self.loops.stop_all()
        await sweep(self.system, grace=SWEEP_GRACE)
        self._servers.clear()
        self._lock.release()

    async def _start(self, server: Server) -> None:
        await server.start()
        starts = self._states.get(server.name, ChildState()).starts + 1
        self._note(server.name, pid=server.pid, starts=starts, last_error="", log=str(server.log_path))

    async def _keep(self, server: Server) -> None:
        pause = FIRST_PAUSE
        while True:
            began = time.monotonic()
            code = await server.wait()
            self._note(server.name, pid=None, last_exit=code)
            log.warning("server.ended", server=server.name, exit=code)
            if time.monotonic() - began > CALM:
                pause = FIRST_PAUSE
            pause = await self._restart(server, pause)

    async def _restart(self, server: Server, pause: float) -> float:
        """Start a server that has died, after `pause` seconds, and again until that succeeds. Return the pause to make before the next restart."""
        while True:
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            try:
                await self._start(server)
            except Exception as error:  # noqa: BLE001 - whatever keeps it from starting may be mended meanwhile
                self._note(server.name, pid=None, last_error=str(error) or repr(error))
                log.warning("server.failed", server=server.name, error=str(error))
            else:
                return pause

    def _note(self, name: str, **changes: Any) -> None:
        self._states[name] = msgspec.structs.replace(self._states.get(name, ChildState()), **changes)
        self._record()

    async def _record_on(self) -> None:
        while True:
            await asyncio.sleep(RECORD_SECONDS)
            self._record()

    def _record(self) -> None:
        """Write the state file. A failure, such as a full disk, is only logged, since servers must be restarted nevertheless."""
        try:
            write_secret(
                self.data_dir / STATE_FILE, msgspec.json.encode(self.state()).decode(), durable=False
            )
        except OSError as error:
            log.warning("state not written", error=str(error))


def read_state(data_dir: Path) -> SupervisorState | None:
    """Return the state in a data directory's state file, as its supervisor last wrote it; None if there is no such file."""
    with contextlib.suppress(FileNotFoundError):
        return msgspec.json.decode((data_dir / STATE_FILE).read_bytes(), type=SupervisorState)
    return None
