"""Servers as child processes: each can be started, awaited, stopped, killed, and started again."""

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
    """A server that runs as a child process, with a data directory. Only one object in one process may run it at a time.

    It may be started again after `stop`, `kill` or a crash; its port and its durable data stay.
    """

    stop_signals: Sequence[signal.Signals] = (signal.SIGTERM, signal.SIGKILL)
    stop_grace = 10.0

    def __init__(self, data_dir: Path, *, name: str, ready_within: float) -> None:
        self.data_dir = Path(data_dir).absolute()
        self.name = name
        self.ready_within = ready_within
        self.environment: dict[str, str] = {}
        """Environment variables that the process gets beside those of this process. The supervisor adds the system's id."""
        self._lock = DirectoryLock(self.data_dir / "lock")
        self._child: Child | None = None

    @property
    def log_path(self) -> Path:
        """The file to which the server's output is appended."""
        return self.data_dir / f"{self.name}.log"

    @property
    def running(self) -> bool:
        """Whether the server's process has not ended."""
        return self._child is not None and self._child.running

    @property
    def pid(self) -> int | None:
        """The process id while the server runs; None when it does not."""
        return self._child.pid if self._child is not None and self._child.running else None

    async def start(self) -> None:
        """Start the server and wait until it is ready. Raise Rejected if its directory is in use, Unavailable if it fails."""
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
        """Wait until the server is ready, for `timeout` seconds or by default `ready_within`.

        Raise Unavailable, with the end of the log, if the server ends or the time passes first.
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
        """Wait for the end of the process. Return the exit code, or the negative number of the signal that ended it."""
        assert self._child is not None, f"{self.name} was never started"
        return await self._child.wait()

    async def stop(self) -> None:
        """Stop the server, by force if it does not end, and release its directory."""
        if self._child is not None:
            await self._child.stop(grace=self.stop_grace, signals=self.stop_signals)
        self._lock.release()

    async def kill(self) -> None:
        """Kill the process with SIGKILL and wait for its end. The directory stays locked for the next start."""
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
        """Return whether the server takes requests. It is called again and again during the start."""

    def _complaint(self, what: str) -> str:
        end = self._child.log_tail() if self._child is not None else ""
        return f"{self.name} {what}; the end of {self.log_path}: {end}"


class KafkaServer(Server):
    """A Kafka broker that runs as a child process and listens on one port of 127.0.0.1."""

    port: int

    @property
    def bootstrap(self) -> str:
        """The broker's address for clients, as HOST:PORT."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def access(self) -> Table:
        """How clients connect to the broker, as a table of a configuration file."""
        return {"bootstrap": self.bootstrap}

    async def open_stream(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection to the broker without sending anything. Raise OSError if that fails."""
        return await asyncio.open_connection(LOOPBACK, self.port)

    @abc.abstractmethod
    async def wipe(self) -> None:
        """Remove all topics and the cluster's id. The broker must not run."""


class Program(Server):
    """Any other program as a server. It is ready once `ready` returns true; without `ready`, as soon as it runs."""

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
    """Return the port for a server, and store one that was chosen in the file `name` of `data_dir`.

    It is `wanted`; for 0 the port stored before if it is free, else any free port.
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
