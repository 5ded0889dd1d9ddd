"""Servers as child processes with a data directory: they can be started, awaited, stopped, killed and started again."""

import abc
import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from wms.embedded.lock import DirectoryLock
from wms.embedded.process import Child, free_port, is_free
from wms.errors import Unavailable
from wms.files import Table, write_secret

LOOPBACK = "127.0.0.1"


class Server(abc.ABC):
    """The base class of servers that run as a child process with a data directory. A lock allows one object in one process to run it.

    It may be started again after `stop`, `kill` or a crash; its port and its durable data stay.
    """

    stop_signals: Sequence[signal.Signals] = (signal.SIGTERM, signal.SIGKILL)
    stop_grace = 10.0

    def __init__(self, data_dir: Path, *, name: str, ready_within: float) -> None:
        self.data_dir = Path(data_dir).absolute()
        self.name = name
        self.ready_within = ready_within
        self.environment: dict[str, str] = {}
        """Environment variables of the process, in addition to inherited ones. The supervisor adds the system's id."""
        self._lock = DirectoryLock(self.data_dir / "lock")
        self._child: Child | None = None

    @property
    def log_path(self) -> Path:
        """The file to which the server's standard output and error are appended."""
        return self.data_dir / f"{self.name}.log"

    @property
    def running(self) -> bool:
        """Whether the server's process is running, as far as asyncio has noticed."""
        return self._child is not None and self._child.running

    @property
    def pid(self) -> int | None:
        """The process id while the server runs; None when it does not."""
        return self._child.pid if self._child is not None and self._child.running else None

    async def start(self) -> None:
        """Start the server and wait until it is ready. Raise Rejected if another process uses its directory.

        Raise Unavailable if it ends early or is not ready in time; then it is killed.
        """
        assert not self.running, f"{self.name} runs already"
        self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock.acquire()
        try:
            self._child = await self._launch()
            await self.wait_ready()
        except BaseException:
            await self.kill()
            self._lock.release()
            raise

    async def wait_ready(self, timeout: float | None = None) -> None:
        """Wait until the server is ready, at most `timeout` seconds; None: `ready_within` seconds.

        Raise Unavailable, with the end of the log, if the server ends first or the time is over.
        """
        limit = self.ready_within if timeout is None else timeout
        deadline = time.monotonic() + limit
        pause = 0.005
        while not await self._is_ready():
            if not self.running:
                raise Unavailable(self._complaint("ended while starting"))
            if time.monotonic() > deadline:
                raise Unavailable(self._complaint(f"was not ready within {limit:g} s"))
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.1)

    async def wait(self) -> int:
        """Wait for the end of the process. Return its exit code, or minus the number of the signal that ended it."""
        assert self._child is not None, f"{self.name} was never started"
        return await self._child.wait()

    async def stop(self) -> None:
        """Stop the server by `stop_signals`, with `stop_grace` seconds between them, and release the directory's lock."""
        if self._child is not None:
            await self._child.stop(grace=self.stop_grace, signals=self.stop_signals)
        self._lock.release()

    async def kill(self) -> None:
        """Kill the process with SIGKILL and wait for its end. The directory stays locked, so that this object can start it again."""
        if self._child is not None:
            self._child.send(signal.SIGKILL)
            await self._child.wait()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @abc.abstractmethod
    async def _launch(self) -> Child:
        """Prepare the data directory and start the process, without waiting until it is ready."""

    @abc.abstractmethod
    async def _is_ready(self) -> bool:
        """Return whether the server accepts requests. `wait_ready` calls it repeatedly."""

    def _complaint(self, what: str) -> str:
        end = self._child.log_tail() if self._child is not None else ""
        return f"{self.name} {what}; the end of {self.log_path}: {end}"


class KafkaServer(Server):
    """A Kafka broker as a child process. Unless a subclass isolates it, it listens on one TCP port of 127.0.0.1."""

    port: int

    @property
    def bootstrap(self) -> str:
        """The broker's address for clients, as HOST:PORT."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def access(self) -> Table:
        """The settings by which clients connect to the broker, as a table of a configuration file."""
        return {"bootstrap": self.bootstrap}

    async def open_stream(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection to the broker without sending anything. Return its reader and writer. Raise OSError if that fails."""
        return await asyncio.open_connection(LOOPBACK, self.port)

    @abc.abstractmethod
    async def wipe(self) -> None:
        """Remove all topics and the cluster's id. The broker must not be running."""


class Program(Server):
    """A server that runs any program `argv`, with `env` added to its environment.

    It is ready once the function `ready` returns true; without `ready`, as soon as it runs.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        name: str,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        ready: Callable[[], bool] | None = None,
        ready_within: float = 30.0,
    ) -> None:
        super().__init__(data_dir, name=name, ready_within=ready_within)
        self.argv = tuple(argv)
        self.environment |= env or {}
        self._ready = ready

    async def _launch(self) -> Child:
        return await Child.start(
            self.argv, log_path=self.log_path, cwd=self.data_dir, env={**os.environ, **self.environment}
        )

    async def _is_ready(self) -> bool:
        return self.running if self._ready is None else self._ready()


def settle_port(data_dir: Path, wanted: int, name: str = "port") -> int:
    """Return the TCP port for a server: `wanted`, if it is not 0. For 0, return the port stored in the file `name` of `data_dir` if it is free.

    Otherwise choose a free port and store it there.
    """
    if wanted:
        return wanted
    file = data_dir / name
    with contextlib.suppress(FileNotFoundError, ValueError):
        last = int(file.read_text("ascii"))
        if is_free(last):
            return last
    port = free_port()
    write_secret(file, f"{port}\n", durable=False)
    return port
