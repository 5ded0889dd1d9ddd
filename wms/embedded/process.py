"""Child processes that end with their parent, write a log file, and can be stopped gracefully or killed."""

import asyncio
import asyncio.subprocess
import contextlib
import ctypes
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

PR_SET_PDEATHSIG = 1
LOG_LIMIT = 32 * 1024 * 1024
# Below the range of source ports of outgoing connections on Linux (from 32768), so that no connection takes the port of
# a server by chance while it restarts.
PORTS = range(20_000, 32_000)

# Loaded before any fork, since dlopen takes a lock, and nothing may take a lock between fork and exec.
_LIBC = ctypes.CDLL(None, use_errno=True)


def _tie(parent: int, death_signal: int) -> Callable[[], None]:
    """Return a function for the child to run before exec. It makes the kernel send `death_signal` when the parent dies.

    If the process `parent` is dead already, the child exits with status 1.
    """

    def before_exec() -> None:
        if sys.platform == "linux":
            _LIBC.prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
        if os.getppid() != parent:  # the parent died before the line above, so no signal will come
            os._exit(1)

    return before_exec


class Child:
    """A child process in a session of its own. Its standard output and error are appended to a log file."""

    def __init__(self, process: asyncio.subprocess.Process, log_path: Path) -> None:
        self._process = process
        self.log_path = log_path

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        log_path: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        death_signal: signal.Signals = signal.SIGKILL,
    ) -> Self:
        """Start the program `argv` in the directory `cwd`. `env` is its whole environment; None: that of this process.

        Call it from a thread that lives as long as the program, since Linux sends `death_signal` when the *thread* that forked ends. A log
        file over 32 MiB is first renamed to `NAME.1`. Raise OSError if the program cannot be started.
        """
        with _open_log(log_path) as log:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=None if env is None else dict(env),
                cwd=cwd,
                start_new_session=True,
                preexec_fn=_tie(os.getpid(), death_signal),
            )
        return cls(process, log_path)

    @property
    def pid(self) -> int:
        """The process id. After the process has ended, the id may belong to another process."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, or minus the number of the signal that ended the process; None while it runs."""
        return self._process.returncode

    @property
    def running(self) -> bool:
        """Whether the process is running, as far as asyncio has noticed."""
        return self._process.returncode is None

    async def wait(self) -> int:
        """Wait for the end of the process. Return its exit code, or minus the number of the signal that ended it."""
        return await self._process.wait()

    def send(self, sig: signal.Signals) -> None:
        """Send a signal to the process; do nothing if it has ended."""
        # Not by asyncio's process: it first takes the exit code of one that has just ended, so that its watcher finds none and says 255.
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, sig)

    async def stop(
        self, *, grace: float, signals: Sequence[signal.Signals] = (signal.SIGTERM, signal.SIGKILL)
    ) -> int:
        """Send `signals` in turn until the process ends. Return its exit code, or minus the number of the signal that ended it.

        After each signal but the last it waits `grace` seconds; after the last without a limit.
        """
        for sig in signals[:-1]:
            if not self.running:
                break
            self.send(sig)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    return await self.wait()
        self.send(signals[-1])
        return await self.wait()

    def log_tail(self, lines: int = 15) -> str:
        """Return the last `lines` lines of the process's log file, from its last 64 KiB."""
        return tail(self.log_path, lines)


@contextlib.contextmanager
def _open_log(path: Path) -> Iterator[int]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size > LOG_LIMIT:
            path.replace(path.with_name(path.name + ".1"))
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        yield fd
    finally:
        os.close(fd)


def tail(path: Path, lines: int = 15) -> str:
    """Return the last `lines` lines of a text file, from its last 64 KiB; empty if the file does not exist."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 65_536))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def is_free(port: int) -> bool:
    """Return whether a server could listen on this TCP port of 127.0.0.1 now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """Return a random TCP port of 127.0.0.1, from 20000 to 31999, on which nobody listens. It is not reserved for the caller.

    Raise OSError if 200 attempts find none.
    """
    for _ in range(200):
        port = secrets.choice(PORTS)
        if is_free(port):
            return port
    raise OSError(f"no free port found between {PORTS.start} and {PORTS.stop}")
