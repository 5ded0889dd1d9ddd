"""Starts, signals and kills the processes of payloads through the shepherd, a process beside the agent, and receives their ends.

If the shepherd dies, its payloads are killed: the agent finds their processes by their marks (resource limits that they
inherit). Their ends are reported as `lost`. The next start of a payload starts a new shepherd.
"""

import asyncio
import math
import resource
import secrets
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, cast

import msgspec

import wms
from services.job_agent.payload import cgroup, orphans, shepherd
from services.job_agent.payload.shepherd_messages import (
    Contained,
    Exited,
    FailedToStart,
    FromShepherd,
    ProcessEnd,
    SpawnOrder,
    Started,
    StrayEnded,
    decoded,
    encoded,
)
from services.job_agent.threads import Threads
from wms.errors import Unavailable

# A payload that the shepherd has not killed by then is killed by the agent, which also pings the shepherd. A shepherd that does
# not answer is killed, and all its payloads with it. A payload that only dies slowly does not cause this.
INSIST_SECONDS = 3.0
ANSWER_SECONDS = 10.0
SPAWN_SECONDS = 20.0
"""Seconds within which the shepherd must start a program. After that the agent kills the shepherd, with all payloads.

It must also make the first container within that time; after it, payloads run without isolation, or none runs if they must be
isolated.
"""
FILES = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
"""The limit of open files with which the agent was started, and so are payloads."""

T = TypeVar("T")


class NotStarted(Exception):  # noqa: N818 - an outcome, with its reason as its text
    """The program of a job could not be started, and the job is at fault, not the node. The text says why."""


def _first_mark() -> int:
    """Return a random number as a shepherd's first mark: a resource limit that is probably far from those of other shepherds here."""
    ceiling = resource.getrlimit(resource.RLIMIT_RTTIME)[1]
    top = 1 << 60 if ceiling == resource.RLIM_INFINITY else ceiling
    return top // 2 + secrets.randbelow(max(top // 2, 1))


class Process:
    """The main process of a payload, with its descendants. `started` and `ended` are futures for its start and its end."""

    def __init__(self, identity: int, mark: int, link: "_Link") -> None:
        self.mark = mark
        """The resource limit (hard RLIMIT_RTTIME) by which the payload's processes are found. They inherit it, and no other payload has it."""
        self.pid = 0
        self.container = 0
        """The pid of the first process of the shepherd's container for this payload; 0 if it has none. If that process ends, all in it end."""
        self.has_image = False
        """Whether the process is Podman or Apptainer, which runs the payload in a container of an image."""
        self.pid_file = ""
        """The file to which Podman writes the pid of the first process in the image's container; empty if there is none."""
        self.cgroup = ""
        """The directory of the payload's cgroup, which all its processes are in; empty if it has none."""
        self.scratch = ""
        """The payload's directory for scratch files, which is on a disk."""
        self.stray_seconds = 0.0
        """CPU seconds of ended descendants that their parents did not wait for. No living process of the payload includes them."""
        loop = asyncio.get_running_loop()
        self.started: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[ProcessEnd] = loop.create_future()
        self._ends_at = math.inf
        self._identity = identity
        self._link = link

    def end(self, grace: float = 0.0) -> None:
        """Order the shepherd to end the process and all its descendants: SIGTERM now, SIGKILL after `grace` seconds. Return at once.

        `ended` is done when all have ended. A later call can only hasten that. If it does not happen within INSIST_SECONDS
        after the grace, the agent kills them itself.
        """
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + grace
        if self.ended.done() or self._ends_at <= ends_at:
            return
        self._ends_at = ends_at
        self._link.send({"op": "end", "id": self._identity, "grace": grace})
        loop.call_later(grace + INSIST_SECONDS, self._insist)

    def live_until(self, boot_seconds: float | None) -> None:
        """Set the time at which the shepherd kills the payload, in seconds since boot as `shepherd.now` returns them. None: never.

        The shepherd does so even if the agent hangs by then.
        """
        self._link.send({"op": "deadline", "id": self._identity, "at": boot_seconds})

    def _insist(self) -> None:
        if self.ended.done():
            return
        if self.cgroup:
            cgroup.kill(self.cgroup)
        for pid in [self.container] if self.container else [pid for pid, _ in shepherd.marked({self.mark})]:
            shepherd.send_signal(pid, signal.SIGKILL)
        self._link.send({"op": "ping", "id": self._identity})
        loop = asyncio.get_running_loop()
        loop.call_later(ANSWER_SECONDS, self._look_at_shepherd, loop.time())

    def _look_at_shepherd(self, asked_at: float) -> None:
        if self.ended.done():
            return
        if self._link.heard_at >= asked_at:
            self._insist()
        else:
            self._link.kill()


class _Link(asyncio.Protocol):
    """The agent's socket to one shepherd, and the payload processes that this shepherd runs.

    `program` is the shepherd's process. The marks of its payloads are counted down from `first_mark`. Sockets for stagers are
    sent over `stagers`.
    """

    def __init__(self, program: "subprocess.Popen[bytes]", first_mark: int, stagers: socket.socket) -> None:
        self._program = program
        self._stagers = stagers
        self._mark = first_mark
        self._transport: asyncio.WriteTransport | None = None
        self._incoming = b""
        self._processes: dict[int, Process] = {}
        self._count = 0
        self.contained: asyncio.Future[Contained] = asyncio.get_running_loop().create_future()
        """A future with the result of making the first container."""
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """A future that is done once the shepherd and all its payloads have ended."""
        self._sweep: asyncio.Task[None] | None = None
        self.heard_at = float("-inf")
        """The time of the shepherd's last message, in seconds of the loop's clock."""

    @property
    def usable(self) -> bool:
        return self._transport is not None and not self._transport.is_closing() and self._sweep is None

    def new_process(self) -> tuple[int, Process]:
        self._count += 1
        self._mark -= 2
        process = self._processes[self._count] = Process(self._count, self._mark, self)
        return self._count, process

    def send(self, order: dict[str, object]) -> None:
        # A shepherd that is gone needs no orders. Writing to a closed transport raises in uvloop, and not in asyncio.
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(encoded(order))

    def send_stager(self, link: socket.socket) -> None:
        """Send a socket for the stager that is ordered next. Raise Unavailable if the shepherd is gone or does not take it."""
        try:
            socket.send_fds(self._stagers, [b"."], [link.fileno()])
        except OSError as error:
            raise Unavailable(
                f"the process that minds this node's payloads takes no orders: {error}"
            ) from None

    def stop(self) -> None:
        """Close the socket. The shepherd then kills its payloads and ends."""
        if self._transport is not None:
            self._transport.close()

    def kill(self) -> None:
        self._program.kill()

    # --- asyncio.Protocol ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(
            "asyncio.WriteTransport", transport
        )  # uvloop's own are of no class of asyncio's

    def data_received(self, data: bytes) -> None:
        self.heard_at = asyncio.get_running_loop().time()
        *lines, self._incoming = (self._incoming + data).split(b"\n")
        for line in lines:
            self._hear(decoded(line))

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._sweep = asyncio.get_running_loop().create_task(self._clear())

    # ---

    def _hear(self, message: FromShepherd) -> None:
        if isinstance(message, Contained):
            _settle(self.contained, message)
            return
        process = self._processes.get(message.id)
        if process is None:
            return
        match message:
            case Started(pid=pid, container=container):
                process.pid, process.container = pid, container
                _settle(process.started, None)
            case FailedToStart(error=error, fault=fault):
                del self._processes[message.id]
                _fail(process.started, NotStarted(error) if fault == "job" else Unavailable(error))
                _settle(process.ended, ProcessEnd(exit_code=127))
            case StrayEnded(user_seconds=user, system_seconds=system):
                process.stray_seconds += user + system
            case Exited():
                del self._processes[message.id]
                _settle(process.ended, message)

    async def _clear(self) -> None:
        """After the shepherd has ended, kill what it left of its payloads, and set their ends as lost."""
        marks = {process.mark for process in self._processes.values()}
        containers = {process.container for process in self._processes.values()} - {0}
        cgroups = {process.cgroup for process in self._processes.values()} - {""}
        with Threads(1, "shepherd") as thread:
            stuck = await thread.run(orphans.end, self._program, marks, containers, cgroups)
        for process in self._processes.values():
            _fail(process.started, Unavailable("the process that minds this node's payloads died"))
            _settle(process.ended, ProcessEnd(signal=signal.SIGKILL, lost=True, stuck=stuck))
        self._processes.clear()
        self._stagers.close()
        _settle(self.contained, Contained("the process that minds this node's payloads died"))
        _settle(self.gone, None)


def _settle(future: "asyncio.Future[T]", result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[None]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # looked at: nobody need wait for it


class Processes:
    """Starts the payload processes of one agent through a shepherd. A shepherd that died is replaced at the next start.

    `containing` are settings for containers, which isolate payloads; None: they are not isolated. If no container can be
    made, `isolation_fault` says why, and payloads run without. But with `required`, or after one container was made, no
    payload is started without one. Use it as an `async with` context: at its end all payloads are killed.
    """

    def __init__(self, containing: dict[str, object] | None = None, *, required: bool = False) -> None:
        self._containing = containing
        self._required = required
        self.isolation_fault = ""
        self.network_fault = "payloads are not isolated"
        """Why payloads cannot run without a network; empty if they can."""
        self._link: _Link | None = None
        self._starting = asyncio.Lock()
        self._is_over = False

    async def __aenter__(self) -> Self:
        self._is_over = False
        shepherd.prctl(shepherd.PR_SET_CHILD_SUBREAPER, 1)
        await self._linked()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        if self._link is not None:
            self._link.stop()
            await self._link.gone

    @property
    def shepherd_pid(self) -> int | None:
        """The process id of the present or last shepherd. None before the first one."""
        return self._link._program.pid if self._link else None  # noqa: SLF001 - the same module's

    async def spawn(self, order: SpawnOrder, stager: socket.socket | None = None) -> Process:
        """Start a payload's process as ordered, and return it once its program runs.

        `stager` is the socket for a stager, if one is ordered. Raise NotStarted with the reason if the job is at fault. Raise
        Unavailable if the node is, or if it takes longer than SPAWN_SECONDS.
        """
        link = await self._linked()
        if stager is not None:
            link.send_stager(stager)
        identity, process = link.new_process()
        process.has_image, process.pid_file = order.has_image, order.pid_file
        process.cgroup, process.scratch = order.cgroup, order.scratch
        link.send({"op": "spawn", "id": identity, "mark": process.mark, **msgspec.structs.asdict(order)})
        try:
            async with asyncio.timeout(SPAWN_SECONDS):
                await asyncio.shield(process.started)
        except asyncio.CancelledError:
            process.end()
            raise
        except TimeoutError:
            link.kill()
            raise Unavailable(f"the program could not be loaded within {SPAWN_SECONDS:g} s") from None
        return process

    async def _linked(self) -> _Link:
        async with self._starting:
            if self._is_over:
                raise Unavailable("the agent ends")
            if self._link is None or not self._link.usable:
                if self._link is not None:
                    await self._link.gone
                link = await _start()
                await self._contain(link)
                self._link = link
            return self._link

    async def _contain(self, link: _Link) -> None:
        if self._containing is None:
            return
        link.send({"op": "contain", "settings": self._containing})
        try:
            async with asyncio.timeout(SPAWN_SECONDS):
                found = await asyncio.shield(link.contained)
        except TimeoutError:
            found = Contained(f"no container was made within {SPAWN_SECONDS:g} s")
        self.isolation_fault = found.error
        if not self.isolation_fault:
            self._required = True
            self.network_fault = found.network_fault
        elif self._required:
            link.stop()
            raise Unavailable(f"payloads cannot be isolated here, and must be: {self.isolation_fault}")
        else:
            self._containing = None


async def _start() -> _Link:
    ours, theirs = socket.socketpair()
    stagers, taken = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        mark = _first_mark()
        with theirs, taken, Threads(1, "shepherd") as thread:
            program = await thread.run(_launched, theirs.fileno(), mark, taken.fileno())
        for each in (ours, stagers):
            each.setblocking(False)
        _, link = await asyncio.get_running_loop().create_unix_connection(
            lambda: _Link(program, mark, stagers), sock=ours
        )
    except OSError as error:
        ours.close()
        stagers.close()
        raise Unavailable(f"the shepherd of payloads cannot be started: {error}") from error
    return link


def _launched(descriptor: int, mark: int, stagers: int) -> "subprocess.Popen[bytes]":
    # In a session of its own, so that a terminal's Ctrl-C is the agent's to handle; with no environment, since payloads
    # can read that of any process of their user.
    arguments = (Path(shepherd.__file__), descriptor, mark, stagers, Path(wms.__file__).parent, FILES)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # to send to stagers: see container.FILES_MOST
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-E", *map(str, arguments)],
        pass_fds=(descriptor, stagers),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={},
        start_new_session=True,
    )
