"""The shepherd: a small process beside a job agent that starts payloads and ends all their processes.

It is run as a program, `python -I -S -E shepherd.py FD MARK STAGERS WMS FILES`, and imports only quick parts of the standard library,
so that it starts in milliseconds. FD is a stream socket to the agent. STAGERS is one over which the agent sends the sockets
for stagers (see stager.py), each before its order; WMS is the directory of the package `wms`. FILES is the
limit of open files that payloads inherit. Both send JSON, one object on each
line:

    {"op": "spawn", "id", "argv", "cwd", "env", "stdout", "stderr",
     "stdout_capture", "stderr_capture", "mark", "umask", "rlimits", "deadline", "has_image", "has_network",
     "cgroup", "cgroup_limits", "is_stager", "disk_bytes", "given", "cpus"}
    {"op": "contain", "settings"}               run what is spawned from now on in containers (see container.py)
    {"op": "end", "id", "grace"}                SIGTERM to all of it now, SIGKILL after `grace` seconds; 0: SIGKILL at once
    {"op": "deadline", "id", "at"}              kill it at this time of CLOCK_BOOTTIME unless changed later; null: never
    {"op": "ping", "id"}                        answer, as a sign of life
    {"is": "pong", "id"}
    {"is": "contained", "error", "network_fault"}    whether that can be done, and without a network: "" or why not
    {"is": "started", "id", "pid", "container"}    the last is its container's pid, or 0
    {"is": "failed_to_start", "id", "error", "fault": "job" or "node"}
    {"is": "stray", "id", "user_seconds", "system_seconds"}    a descendant that its own parent did not wait for ended
    {"is": "exited", "id", "exit_code" or "signal", "wall_seconds", "user_seconds", "system_seconds",
     "max_rss_bytes", "expired", "stuck", "out_of_memory", "is_untouched", "is_free"}

How every descendant is found. A payload's processes may leave its group and session, lose their parent and change their
environment. But they do not lose a resource limit by accident. So each payload gets a hard RLIMIT_RTTIME of its own, a
random number of microseconds around 10^18: its *mark*. Forks and execs inherit it, and prlimit(2) reads it in one call. The
limit only concerns processes under real-time scheduling, and allows them tens of thousands of years.

How a payload is started. To fork a small Python process costs three times as much as to run the program `true`.
posix_spawn(3) copies no memory, but can set no limits in the child. So the shepherd sets the mark on itself, spawns, and then
sets a lower mark. A hard limit can only be lowered, so marks descend from MARK, two for each payload. Payloads with other
limits of the kernel, with a cgroup (see cgroup.py) or without network are forked: all of that is so before the first
instruction of the program.

The shepherd is a child subreaper: a process that loses its parent becomes its child. So nothing is left of a payload once its
main process has ended and the shepherd has no other children than main processes. Otherwise /proc is searched. A child without
the mark of a payload hides on purpose, and is killed at the next end of a payload.

How a payload is ended. There is one order for it. All its processes get SIGTERM, and what is left of them SIGKILL when the grace
is over. A shell that a program was started by dies at once, so the end of the main process does not shorten the grace of others.

What happens if a process ends or hangs. If the agent ends, the socket closes, and the shepherd kills all payloads and ends. If
the shepherd ends, its *guard* kills all processes with one of its marks, and so does the agent. The guard is a fork of the
shepherd that only waits for that. If the agent hangs, payloads are killed at their deadlines. If the guard ends, the shepherd
starts another.

Longer than 400 lines, because it is one event loop, and is run by its path, with neither packages nor site directories. Of
the files beside it, it loads each when a payload needs it: container.py, seccomp.py, cgroup.py, output_stream.py, stager.py.
"""

# pathlib and contextlib would double the time to start.
# ruff: noqa: PTH100, PTH110, PTH113, PTH120, PTH123, PTH208, SIM105

from __future__ import annotations

import ctypes
import errno
import gc
import heapq
import json
import os
import resource
import select
import signal
import socket
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable
    from typing import Any, NoReturn

    from services.job_agent.payload.output_stream import OutputStream

PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36

UMASK = 0o077
MARKS = 1 << 40
"""How many marks (values of a resource limit, by which payloads are found) one shepherd may use, down from its first.

Other shepherds on the machine have other first marks.
"""
NODE_FAULTS = (
    errno.EAGAIN,
    errno.ENOMEM,
    errno.EMFILE,
    errno.ENFILE,
    errno.EPIPE,
    errno.ECONNRESET,
    errno.ETOOMANYREFS,
)
# What overflows is read, or the payload would stand still, but no faster than 64 MiB a second.
OVERFLOW_BURST = 4 * 1024 * 1024
OVERFLOW_PAUSE = 1 / 16

GUARD_PAUSE = 1.0
SETTLE_FIRST = 0.001
SETTLE_LONGEST = 0.05
SETTLE_GIVE_UP = 10.0
# The longest sleep: a suspended machine wakes with deadlines past, and timers that did not count the time.
LONGEST_SLEEP = 1.0

_prctl = ctypes.CDLL(None).prctl


def now() -> float:
    """Return the seconds since boot, including those in which the machine was suspended. Deadlines of payloads are times of this clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def prctl(option: int, value: int) -> None:
    """Set the attribute `option` of this process to `value` by prctl(2). Raise OSError if the kernel refuses."""
    if _prctl(option, value, 0, 0, 0):
        raise OSError(errno.EINVAL, f"prctl({option}, {value})")


def mark_of(pid: int) -> int | None:
    """Return the mark of a process: its hard limit RLIMIT_RTTIME, which identifies the payload that it belongs to.

    None if the process is gone or belongs to another user.
    """
    try:
        return resource.prlimit(pid, resource.RLIMIT_RTTIME)[1]
    except OSError:
        return None


def marked(marks: Container[int], *, of_others: bool = True) -> list[tuple[int, int]]:
    """Return (pid, mark) of every process on this machine that has one of these marks, including zombies.

    A mark is the resource limit by which the processes of a payload are found. If `of_others` is True, processes of other
    users are searched too, as in containers of images; each of these takes ten times as long.
    """
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    find = _mark_of_stray if of_others else mark_of
    return [(pid, mark) for pid in pids if (mark := find(pid)) is not None and mark in marks]


def send_signal(pid: int, number: int) -> None:
    """Send the signal `number` to a process. Nothing happens if it is gone or belongs to another user."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def _mark_of_stray(pid: int) -> int | None:
    """Return the mark of a process (its resource limit that identifies the payload). If it is of another user, read it from /proc.

    Return None if the process is gone or its limit cannot be read.
    """
    mark = mark_of(pid)
    if mark is None:
        try:
            with open(f"/proc/{pid}/limits", "rb") as file:
                line = next(line for line in file if line.startswith(b"Max realtime timeout"))
            mark = int(line.split()[4])
        except (OSError, ValueError, StopIteration):
            return None
    return mark


def _children() -> list[int]:
    """Return the pids of all children of this single-threaded process, zombies included."""
    pid = os.getpid()
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return [int(word) for word in file.read().split()]
    except FileNotFoundError:
        return _children_by_parent(pid)


def _children_by_parent(parent: int) -> list[int]:
    """Return the pids of all children of a process on a kernel without the file `children` in /proc."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    if int(file.read().rpartition(b")")[2].split()[1]) == parent:
                        found.append(int(name))
            except OSError:
                continue
    return found


class Charge:
    """The shepherd's record of one payload that has not been reported as ended.

    `identity` is the payload's number in messages to the agent, `pid` its main process, `mark` the resource limit of its
    processes. `began_at` is in seconds since boot.
    """

    def __init__(
        self, identity: int, pid: int, mark: int, began_at: float, streams: list[OutputStream]
    ) -> None:
        self.identity = identity
        self.pid = pid
        self.mark = mark
        self.streams = streams
        self.began_at = began_at
        self.deadline: float | None = None
        self.expired = False
        self.cgroup = ""
        """The directory of the payload's cgroup; empty if it has none. It is removed when the payload's end is reported."""
        self.order: dict[str, Any] = {}
        self.cell: Cell | None = None
        self.is_untouched = False
        """Whether the payload left its directories as they were made."""
        self.is_free = False
        """Whether no process has its directories open any more."""
        self.ends_at: float | None = None
        """When it gets SIGKILL, in seconds since boot. None: nobody ordered its end."""
        self.ended: int | None = None
        self.ended_at = 0.0
        self.pause = SETTLE_FIRST
        self.user_seconds = 0.0
        self.system_seconds = 0.0
        self.max_rss_bytes = 0

    def add(self, usage: resource.struct_rusage) -> None:
        """Add the CPU time and the peak memory of an ended process of this payload, given by wait4(2)."""
        self.user_seconds += usage.ru_utime
        self.system_seconds += usage.ru_stime
        self.max_rss_bytes = max(self.max_rss_bytes, usage.ru_maxrss * 1024)


class Cell:
    """The shepherd's record of one container: the pid of its first process, the socket to it, and the payload in it, if any."""

    def __init__(self, pid: int, link: socket.socket) -> None:
        self.pid = pid
        self.link = link
        self.charge: Charge | None = None
        self.is_ready = False
        self.error: str | None = None
        """Why the container takes no more payloads. None while it does."""
        self.buried = False


class Shepherd:
    """The event loop of the shepherd, the process beside an agent that starts payloads and ends all their processes.

    `agent` is the socket to the agent. `first_mark` is the resource limit from which marks of payloads are counted down. Over
    `stagers` come the sockets for stagers; `package` is the directory of the package `wms`, whose modules they run.
    """

    def __init__(self, agent: socket.socket, first_mark: int, stagers: socket.socket, package: str) -> None:
        self._agent = agent
        self._stagers = stagers
        self._package = package
        self._first_mark = first_mark
        self._poll = select.epoll()
        self._ready: dict[int, Callable[[], object]] = {}
        self._timers: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self._timer_count = 0
        self._charges: dict[int, Charge] = {}
        self._mains: dict[int, Charge] = {}
        self._marks: dict[int, Charge] = {}
        self._incoming = b""
        self._outgoing = b""
        self._blocked = False
        self._told_to_stop = False
        self._closing = False
        self._guard = 0
        self._held = -1
        self._containing: dict[str, Any] | None = None
        self._cells: dict[int, Cell] = {}
        self._idle: list[Cell] = []

    def run(self) -> None:
        """Serve the agent until it closes the socket or SIGTERM arrives. Then kill all payloads, and return once they have ended."""
        self._post_guard()
        self._watch_signals()
        self._agent.setblocking(False)
        self._register(self._agent.fileno(), self._talk)
        while self._charges or not self._closing:
            for descriptor, _ in self._poll.poll(self._sleep()):
                ready = self._ready.get(descriptor)
                if ready is not None:
                    ready()
            self._fire()
        self._dismiss_guard()

    # --- the guard ---

    def _post_guard(self) -> None:
        """Start the guard: a fork of this process that kills the payloads if this process dies."""
        held_here, self._held = os.pipe2(os.O_CLOEXEC)
        self._guard = os.fork()
        if self._guard == 0:
            _stand_guard(held_here, range(self._first_mark - MARKS, self._first_mark + 1))
        os.close(held_here)

    def _replace_guard(self) -> None:
        os.waitpid(self._guard, 0)
        self._guard = 0
        os.close(self._held)
        self._at(now() + GUARD_PAUSE, self._post_guard)

    def _dismiss_guard(self) -> None:
        """End the guard after the last payload has ended."""
        if self._guard:
            os.write(self._held, b".")
            os.waitpid(self._guard, 0)

    # --- the loop's parts ---

    def _register(self, descriptor: int, ready: Callable[[], object]) -> None:
        self._ready[descriptor] = ready
        self._poll.register(descriptor, select.EPOLLIN)

    def _forget(self, descriptor: int) -> None:
        if self._ready.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def _at(self, when: float, action: Callable[..., None], *arguments: object) -> None:
        self._timer_count += 1
        heapq.heappush(self._timers, (when, self._timer_count, action, arguments))

    def _sleep(self) -> float | None:
        if not self._timers:
            return None
        return min(max(self._timers[0][0] - now(), 0.0), LONGEST_SLEEP)

    def _fire(self) -> None:
        while self._timers and self._timers[0][0] <= now():
            _, _, action, arguments = heapq.heappop(self._timers)
            action(*arguments)

    def _watch_signals(self) -> None:
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._hear_term)

        def ready() -> None:
            try:
                os.read(reading, 4096)
            except BlockingIOError:
                pass
            if self._told_to_stop and not self._closing:
                self._close()
            self._reap()

        self._register(reading, ready)

    def _hear_term(self, *_: object) -> None:
        self._told_to_stop = True

    # --- the agent ---

    def _talk(self) -> None:
        self._flush()
        try:
            data = self._agent.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._forget(self._agent.fileno())
            self._close()
            return
        *lines, self._incoming = (
            (self._incoming + data).split(b"\n") if b"\n" in data else (self._incoming + data,)
        )
        for line in lines:
            self._obey(json.loads(line))

    def _obey(self, order: dict[str, Any]) -> None:
        if order["op"] == "spawn":
            self._spawn(order)
            return
        if order["op"] == "contain":
            self._contain(order["settings"])
            return
        if order["op"] == "ping":
            self._tell("pong", order["id"])
            return
        charge = self._charges.get(order["id"])
        if charge is None:
            return
        if order["op"] == "end":
            self._end(charge, order["grace"])
        elif order["op"] == "deadline":
            self._set_deadline(charge, order["at"])

    def _tell(self, what: str, identity: int, **more: object) -> None:
        self._outgoing += json.dumps({"is": what, "id": identity, **more}).encode() + b"\n"
        self._flush()

    def _flush(self) -> None:
        if not self._outgoing:
            return
        try:
            sent = self._agent.send(self._outgoing, socket.MSG_NOSIGNAL)
        except BlockingIOError:
            sent = 0
        except OSError:
            sent = len(self._outgoing)
        self._outgoing = self._outgoing[sent:]
        if self._blocked != bool(self._outgoing) and self._agent.fileno() in self._ready:
            self._blocked = bool(self._outgoing)
            events = select.EPOLLIN | (select.EPOLLOUT if self._blocked else 0)
            self._poll.modify(self._agent.fileno(), events)

    def _close(self) -> None:
        """Kill all payloads and refuse new ones. `run` returns once all have ended."""
        self._closing = True
        for cell in self._cells.values():
            send_signal(cell.pid, signal.SIGKILL)
        for charge in self._charges.values():
            _kill_cgroup(charge)
            if charge.cell is None:
                send_signal(charge.pid, signal.SIGKILL)
        for pid, _ in marked(self._marks):
            send_signal(pid, signal.SIGKILL)

    # --- starting ---

    def _spawn(self, order: dict[str, Any]) -> None:
        link = None
        try:
            link = self._stager_link() if order["is_stager"] else None
            self._try_spawn(order["id"], order, link)
        except Exception as error:  # noqa: BLE001 - one order's fault: the shepherd's end would be that of all
            text, fault = _fault(error, order)
            self._tell("failed_to_start", order["id"], error=text, fault=fault)
        finally:
            if link is not None:
                link.close()

    def _stager_link(self) -> socket.socket:
        """Return the socket for the stager that is ordered next. Raise OSError if this process can open no more files."""
        _, found, _, _ = socket.recv_fds(self._stagers, 1, 1)
        if not found:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        link = socket.socket(fileno=found[0])
        self._stager()
        return link

    def _stager(self) -> Any:
        """Return the module of stagers. What it needs is read here: the directories may be hidden in containers."""
        module = _beside("stager")
        module.read_sources(self._package)
        return module

    def _try_spawn(self, identity: int, order: dict[str, Any], link: socket.socket | None) -> None:
        if self._closing or identity in self._charges:
            error = "the agent is ending" if self._closing else "started already"
            self._tell("failed_to_start", identity, error=error, fault="node")
            return
        if order["deadline"] is not None and order["deadline"] <= now():
            self._tell("failed_to_start", identity, error="its time is over", fault="node")
            return
        charge = self._placed(order, link)
        self._charges[identity] = self._marks[charge.mark] = charge
        self._set_deadline(charge, order["deadline"])
        for stream in charge.streams:
            self._listen(stream)
        if charge.cell is None:
            self._mains[charge.pid] = charge
            self._tell("started", identity, pid=charge.pid, container=0)

    def _placed(self, order: dict[str, Any], link: socket.socket | None) -> Charge:
        """Start a payload, or send its order to a container, and return its record. Its cgroup is made before, if it is to have one.

        `link` is the socket for a stager; None: the order is that of a payload.
        """
        is_bare = self._containing is None or order["has_image"]
        if is_bare and not order["has_network"]:
            raise SetupError("its network cannot be taken away: payloads are not isolated here")
        if order["cgroup"]:
            _make_cgroup(order["cgroup"], order["cgroup_limits"])
        try:
            charge = self._start(order, link) if is_bare else self._enclosed(order, link)
        except BaseException:
            _remove_cgroup(order["cgroup"])
            raise
        charge.cgroup, charge.order = order["cgroup"], order
        return charge

    def _start(self, order: dict[str, Any], link: socket.socket | None) -> Charge:
        began_at = now()
        pid, streams = _with_streams(order, link, lambda *writing: _spawned(order, *writing))
        return Charge(order["id"], pid, order["mark"], began_at, streams)

    # --- containers ---

    def _contain(self, settings: dict[str, Any]) -> None:
        self._containing = settings
        try:
            self._idle.append(self._new_cell(tries_network=True))
        except OSError as error:
            self._containing = None
            self._tell("contained", 0, error=str(error))

    def _new_cell(self, *, tries_network: bool = False) -> Cell:
        """Start a container and return it. Raise OSError if the kernel forbids it.

        If `tries_network` is True, the container finds out whether a payload in it can run without a network.
        """
        assert self._containing is not None
        _beside("cgroup")  # a container may not see this directory
        settings = {**self._containing, "tries_network": tries_network}
        refuse, untouched = _beside("seccomp").refuse, self._stager().is_untouched
        cell = Cell(*_beside("container").start(settings, _spawned, _fault, refuse, untouched))
        self._cells[cell.pid] = cell
        self._register(cell.link.fileno(), lambda: self._hear(cell))
        return cell

    def _enclosed(self, order: dict[str, Any], link: socket.socket | None) -> Charge:
        began_at = now()
        cell, streams = _with_streams(order, link, lambda *writing: self._handed(order, *writing))
        charge = cell.charge = Charge(order["id"], 0, order["mark"], began_at, streams)
        charge.cell = cell
        return charge

    def _handed(self, order: dict[str, Any], *outputs: int) -> Cell:
        """Send the order for a payload to an idle container, or to a new one if none is idle. Return the container.

        `outputs` are the write ends of the pipes for its output. Raise OSError if the kernel refuses a new container.
        """
        while self._idle:
            cell = self._idle[0]  # the one that has had most time to leave its last payload
            try:
                _beside("container").send(cell.link, order, *outputs)
            except (BrokenPipeError, ConnectionResetError):
                del self._idle[0]  # it ended; that is yet to be heard
                continue
            return self._idle.pop(0)
        cell = self._new_cell()
        self._idle.append(cell)
        _beside("container").send(cell.link, order, *outputs)
        return self._idle.pop(0)

    def _hear(self, cell: Cell) -> bool:
        """Process the next message of a container, or its end. Return False if there is no message yet, else True."""
        try:
            heard = _beside("container").receive(cell.link)
        except BlockingIOError:
            return False
        if heard is None:
            self._dismiss(cell, "its container ended")
        else:
            self._take(cell, *heard)
        return True

    def _take(self, cell: Cell, told: dict[str, Any], pid: int) -> None:
        charge = cell.charge
        if told["is"] == "ready":
            cell.is_ready = True
            if charge is None:
                self._tell("contained", 0, error="", network_fault=told["network_fault"])
        elif told["is"] == "failed":
            self._dismiss(cell, told["error"])
        elif charge is not None:
            self._hear_of(cell, charge, told, pid)

    def _hear_of(self, cell: Cell, charge: Charge, told: dict[str, Any], pid: int) -> None:
        if told["is"] == "started":
            charge.pid = pid
            self._tell("started", charge.identity, pid=pid, container=cell.pid)
            if charge.ends_at is not None or self._closing:
                self._kill(charge)
        elif told["is"] == "failed_to_start":
            self._leave(cell)
            self._give_up(charge, told["error"], told["fault"])
        elif told["is"] == "stray":
            used = {name: told[name] for name in ("user_seconds", "system_seconds")}
            self._tell("stray", charge.identity, **used)
        elif told["is"] == "ended":
            self._note_end(charge, told)
            self._at(now() + SETTLE_GIVE_UP, self._abandon, cell, charge)
        elif told["is"] == "settled":
            self._note_end(charge, told)
            charge.user_seconds, charge.system_seconds = told["user_seconds"], told["system_seconds"]
            charge.max_rss_bytes = told["max_rss_bytes"]
            charge.is_untouched, charge.is_free = told["is_untouched"], told["is_free"]
            if told["is_changed"]:
                cell.charge = None
                self._dismiss(cell, "its limits were changed")
            else:
                self._leave(cell)
            self._finish(charge, told["status"], 0)

    def _note_end(self, charge: Charge, told: dict[str, Any]) -> None:
        charge.ended = told["status"]
        charge.ended_at = charge.began_at + told["wall_seconds"]

    def _leave(self, cell: Cell) -> None:
        """Mark a container as idle, so that it can have the next payload."""
        cell.charge = None
        self._idle.append(cell)

    def _give_up(self, charge: Charge, error: str, fault: str) -> None:
        self._forget_charge(charge)
        self._tell("failed_to_start", charge.identity, error=error, fault=fault)

    def _dismiss(self, cell: Cell, error: str) -> None:
        """Close a container's socket and kill it. `error` says why it takes no more payloads.

        The kernel ends all processes in it before the container itself ends. After SETTLE_GIVE_UP seconds its payload is
        reported as ended in any case.
        """
        cell.error = error
        self._forget(cell.link.fileno())
        cell.link.close()
        send_signal(cell.pid, signal.SIGKILL)
        if cell in self._idle:
            self._idle.remove(cell)
        self._at(now() + SETTLE_GIVE_UP, self._bury, cell, 1)

    def _reap_cell(self, cell: Cell) -> None:
        """Process the remaining messages of a container that has ended, wait for its process, and report the end of its payload."""
        while cell.error is None:
            if not self._hear(cell):
                self._dismiss(cell, "its container ended")
        os.waitpid(cell.pid, 0)
        self._bury(cell, 0)

    def _bury(self, cell: Cell, stuck: int) -> None:
        """Report the end of a container's payload to the agent. `stuck` is the number of its processes that did not end.

        Without a payload, report that containers cannot be made if this one was never ready.
        """
        charge, cell.charge = cell.charge, None
        error = cell.error or ""
        if charge is not None:
            if charge.pid:
                charge.ended_at = charge.ended_at or now()
                self._finish(charge, signal.SIGKILL if charge.ended is None else charge.ended, stuck)
            else:
                self._give_up(charge, f"it cannot be isolated: {error}", "node")
        elif not cell.is_ready and not cell.buried:
            self._containing = None
            self._tell("contained", 0, error=error)
        cell.buried = True

    def _abandon(self, cell: Cell, charge: Charge) -> None:
        """Report the end of a payload whose other processes SIGKILL did not end in time, and kill its container.

        Nothing happens if the payload's end was reported before.
        """
        if cell.charge is charge and charge.ended is not None:
            cell.charge = None
            send_signal(cell.pid, signal.SIGKILL)
            self._finish(charge, charge.ended, 1)

    # --- outputs ---

    def _listen(self, stream: OutputStream) -> None:
        if stream.descriptor not in self._ready:
            self._register(stream.descriptor, lambda: self._pump(stream))

    def _pump(self, stream: OutputStream) -> None:
        if not stream.pump():
            # Closed by the payload; the descriptor stays ours until its end.
            self._forget(stream.descriptor)
        elif stream.overflow > OVERFLOW_BURST:
            stream.overflow = 0
            self._forget(stream.descriptor)
            self._at(now() + OVERFLOW_PAUSE, self._resume, stream)

    def _resume(self, stream: OutputStream) -> None:
        if any(stream in charge.streams for charge in self._charges.values()):
            self._listen(stream)

    # --- stopping ---

    def _end(self, charge: Charge, grace: float) -> None:
        """Send SIGTERM to all processes of a payload, and SIGKILL after `grace` seconds. A later order can only hasten that."""
        first, at = charge.ends_at is None, now() + grace
        if charge.ends_at is not None and charge.ends_at <= at:
            return
        self._end_by(charge, at)
        if grace <= 0:
            self._kill(charge)
            return
        self._at(at, self._strike, charge)
        if first:
            self._terminate(charge)

    def _end_by(self, charge: Charge, at: float) -> None:
        """Set when a payload gets SIGKILL, and tell its container, which has to know that when the main process ends."""
        charge.ends_at = at
        if charge.cell is not None:
            try:
                _beside("container").send_end(charge.cell.link, charge.mark, at)
            except OSError:  # it ended, or does not listen: the agent insists
                pass

    def _terminate(self, charge: Charge) -> None:
        for pid, _ in marked({charge.mark}):
            send_signal(pid, signal.SIGTERM)
        if charge.order["pid_file"] and _is_deaf(charge.order["pid_file"]):
            self._kill(charge)

    def _kill(self, charge: Charge) -> None:
        if charge.ends_at is None or charge.ends_at > now():
            self._end_by(charge, now())
        _kill_cgroup(charge)
        if charge.ended is None and _is_there(charge):
            send_signal(charge.pid, signal.SIGKILL)  # a container then ends all the rest
        if charge.cell is None:
            for pid, _ in marked({charge.mark}):
                send_signal(pid, signal.SIGKILL)

    def _set_deadline(self, charge: Charge, at: float | None) -> None:
        charge.deadline = at
        if at is not None:
            self._at(at, self._strike, charge)

    def _strike(self, charge: Charge) -> None:
        """Kill a payload if its lease has ended, or its grace."""
        if self._charges.get(charge.identity) is not charge:
            return
        expired = charge.deadline is not None and charge.deadline <= now()
        charge.expired = charge.expired or (expired and charge.ended is None)
        if expired or (charge.ends_at is not None and charge.ends_at <= now()):
            self._kill(charge)

    # --- ends ---

    def _reap(self) -> None:
        ended = []
        while (pid := _ended_child()) is not None:
            if pid == self._guard:
                self._replace_guard()
                continue
            if pid in self._cells:
                self._reap_cell(self._cells.pop(pid))
                continue
            charge = self._mains.get(pid)
            owner = charge or self._owner(pid)
            _, status, usage = os.wait4(pid, 0)
            if owner is not None:
                owner.add(usage)
            if charge is not None:
                charge.ended = status
                charge.ended_at = now()
                ended.append(charge)
            elif owner is not None:
                self._tell(
                    "stray", owner.identity, user_seconds=usage.ru_utime, system_seconds=usage.ru_stime
                )
        for charge in ended:
            del self._mains[charge.pid]
        for charge in ended:
            self._settle(charge)

    def _owner(self, pid: int) -> Charge | None:
        mark = _mark_of_stray(pid)
        return None if mark is None else self._marks.get(mark)

    def _settle(self, charge: Charge) -> None:
        """Report the end of a payload whose main process has ended, once its other processes are gone.

        Until then these are sent SIGKILL again and again, from the end of their grace on. After SETTLE_GIVE_UP seconds more the
        end is reported with the number of those left.
        """
        left = self._remains(charge)
        since = max(charge.ended_at, charge.ends_at or 0.0)
        stuck = bool(left) and now() - since > SETTLE_GIVE_UP
        if charge.ended is not None and (not left or stuck):
            self._finish(charge, charge.ended, len(left))
            return
        if now() >= since:
            _kill_cgroup(charge)
            for pid in left:
                send_signal(pid, signal.SIGKILL)
        self._at(now() + charge.pause, self._settle_again, charge)
        charge.pause = min(charge.pause * 2, SETTLE_LONGEST)

    def _settle_again(self, charge: Charge) -> None:
        self._reap()
        self._settle(charge)

    def _remains(self, charge: Charge) -> list[int]:
        ours = {self._guard, *self._mains, *self._cells}
        strays = [pid for pid in _children() if pid not in ours]
        owners = {pid: self._owner(pid) for pid in strays}
        left = [pid for pid, owner in owners.items() if owner is charge or owner is None]
        if charge.cgroup:
            left += _beside("cgroup").pids(charge.cgroup)
        if not left:
            return []
        return list({*left, *(pid for pid, _ in marked({charge.mark}))})

    def _forget_charge(self, charge: Charge) -> None:
        for stream in charge.streams:
            self._forget(stream.descriptor)
            stream.drain()
        _remove_cgroup(charge.cgroup)
        del self._charges[charge.identity]
        del self._marks[charge.mark]

    def _finish(self, charge: Charge, ended: int, stuck: int) -> None:
        out_of_memory = _count_cgroup(charge)
        self._forget_charge(charge)
        if (
            charge.cell is None
            and not stuck
            and not charge.order["is_stager"]
            and not charge.order["has_image"]
        ):
            charge.is_untouched, charge.is_free = self._stager().is_untouched(charge.order), True
        by_signal = os.WIFSIGNALED(ended)
        self._tell(
            "exited",
            charge.identity,
            exit_code=None if by_signal else os.WEXITSTATUS(ended),
            signal=os.WTERMSIG(ended) if by_signal else None,
            wall_seconds=charge.ended_at - charge.began_at,
            user_seconds=charge.user_seconds,
            system_seconds=charge.system_seconds,
            max_rss_bytes=charge.max_rss_bytes,
            expired=charge.expired,
            stuck=stuck,
            out_of_memory=out_of_memory,
            is_untouched=charge.is_untouched,
            is_free=charge.is_free,
        )


def _ended_child() -> int | None:
    """Return the pid of a child that has ended and that this process did not wait for yet; None if there is none."""
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return found.si_pid if found else None


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _is_there(charge: Charge) -> bool:
    """Return whether the pid of a payload's main process still belongs to that process, alive or a zombie.

    In a container the container's first process waits for it. The kernel may then have given the pid to another process.
    """
    if charge.cell is None:
        return True
    try:
        with open(f"/proc/{charge.pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1]) == charge.cell.pid
    except OSError:
        return False


def _is_deaf(pid_file: str) -> bool:
    """Return whether SIGTERM cannot end what runs in an image's container: one process, the first there, that does not catch it.

    The kernel gives the first process of a container only the signals that it catches.
    """
    try:
        with open(pid_file, "rb") as file:
            pid = int(file.read())
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            if file.read():
                return False
        with open(f"/proc/{pid}/status", "rb") as file:
            caught = next(line for line in file if line.startswith(b"SigCgt:"))
        return not int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1
    except (OSError, ValueError, StopIteration):
        return False


def _with_streams(
    order: dict[str, Any], link: socket.socket | None, spawn: Callable[[int, int], Any]
) -> tuple[Any, list[OutputStream]]:
    """Make two pipes for a payload's output and call `spawn` with their write ends. Return its result and the streams that read them.

    A stager has no output: `spawn` is called with the descriptor of its socket `link`, twice.
    """
    if link is not None:
        return spawn(link.fileno(), link.fileno()), []
    reading: list[int] = []
    writing: list[int] = []
    try:
        for _ in range(2):
            ends = os.pipe2(os.O_CLOEXEC)
            reading.append(ends[0])
            writing.append(ends[1])
        spawned = spawn(*writing)
    except BaseException:
        _close(reading)
        raise
    finally:
        _close(writing)
    streams = []
    for end, name in zip(reading, ("stdout", "stderr"), strict=True):
        os.set_blocking(end, False)
        streams.append(_beside("output_stream").OutputStream(end, order[name], order[f"{name}_capture"]))
    return spawned, streams


def _beside(name: str) -> Any:
    """Return the Python module `name` in this directory. It is loaded at the first call, as not every pilot needs it."""
    if name not in sys.modules:
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        try:
            __import__(name)
        finally:
            del sys.path[0]
    return sys.modules[name]


def _make_cgroup(path: str, limits: dict[str, str]) -> None:
    try:
        _beside("cgroup").make(path, limits)
    except OSError as error:
        raise SetupError(f"its cgroup cannot be made: {error}") from error


def _kill_cgroup(charge: Charge) -> None:
    if charge.cgroup:
        _beside("cgroup").kill(charge.cgroup)


def _remove_cgroup(path: str) -> None:
    if path:
        _beside("cgroup").remove(path)


def _count_cgroup(charge: Charge) -> bool:
    """Take the CPU time of a payload from its cgroup, if it has one. Return whether its memory reached the limit there."""
    if not charge.cgroup:
        return False
    used = _beside("cgroup").CgroupUse(charge.cgroup)
    charge.user_seconds, charge.system_seconds = used.user_seconds, used.system_seconds
    if used.out_of_memory:
        charge.max_rss_bytes = max(charge.max_rss_bytes, used.peak_bytes)
    return bool(used.out_of_memory)


def _spawned(order: dict[str, Any], stdout: int, stderr: int, owner: Any = None) -> int:
    """Start the payload's program and return its pid. `stdout` and `stderr` are the write ends of pipes for its output.

    `owner` is the `PayloadOwner` as whom it runs; None: this process's own user. Raise OSError if the program cannot be
    started, SetupError if what it is to have cannot be set up.
    """
    os.chdir(order["cwd"])
    if order["umask"] != UMASK:
        os.umask(order["umask"])
    own = os.sched_getaffinity(0) if order.get("cpus") else None
    try:
        if own is not None:
            _bind(order["cpus"])
        _bear(order["mark"])
        if order.get("given"):
            _give(order, owner)
        if order.get("is_stager"):
            _beside("stager").load()
        if order.get("is_stager") or order["rlimits"] or order["cgroup"] or not order["has_network"]:
            return _forked(order, stdout, stderr, owner)
        if owner is None:
            return _launched(order, stdout, stderr)
        return int(owner.lend(lambda: _launched(order, stdout, stderr)))
    finally:
        if own is not None:
            _bind(own)
        _bear(order["mark"] - 1)
        os.umask(UMASK)
        os.chdir("/")


def _give(order: dict[str, Any], owner: Any) -> None:
    """Write the files that a payload is given, as the user as whom it runs."""

    def write() -> int:
        _beside("stager").give(order["scratch"], order["given"])
        return 0

    try:
        write() if owner is None else owner.lend(write)
    except OSError as error:
        raise SetupError(f"its files cannot be written: {error}") from error


def _launched(order: dict[str, Any], stdout: int, stderr: int) -> int:
    return os.posix_spawn(
        _program(order["argv"][0], order["env"]),
        order["argv"],
        order["env"],
        file_actions=_file_actions(order, stdout, stderr),
        setsid=True,
    )


def _file_actions(order: dict[str, Any], stdout: int, stderr: int) -> list[tuple[Any, ...]]:
    actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_DUP2, stdout, 1), (os.POSIX_SPAWN_DUP2, stderr, 2)]
    if order.get("stdin"):
        actions.append((os.POSIX_SPAWN_OPEN, 0, order["stdin"], os.O_RDONLY | os.O_NOCTTY, 0))
    return actions


def _bind(cpus: Iterable[int]) -> None:
    """Bind this process, and what it starts from now on, to these processors, unless they are no longer the pilot's."""
    try:
        os.sched_setaffinity(0, cpus)
    except OSError:
        pass


def _bear(mark: int) -> None:
    resource.setrlimit(resource.RLIMIT_RTTIME, (mark, mark))


class SetupError(Exception):
    """A limit, a cgroup or the lack of a network could not be set up for a payload. The node is at fault, not the job."""


def _forked(order: dict[str, Any], stdout: int, stderr: int, owner: Any) -> int:
    """Start the program in a fork, in its cgroup if it has one, that first sets up what the order says; return its pid.

    Raise SetupError if that fails, OSError or ValueError if the program cannot be started.
    """
    reading, writing = os.pipe2(os.O_CLOEXEC)
    try:
        pid = _fork(order["cgroup"])
        if pid == 0:
            _become(order, (stdout, stderr), writing, owner)
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    with open(reading, "rb") as file:
        failure = file.read()  # nothing, once the program has taken the place of the fork
    if failure:
        os.waitpid(pid, 0)
        _raise(failure)
    return pid


def _fork(cgroup: str) -> int:
    if not cgroup:
        return os.fork()
    try:
        return int(_beside("cgroup").fork_into(cgroup))
    except OSError as error:
        raise SetupError(f"it cannot be started in its cgroup: {error}") from error


def _become(order: dict[str, Any], outputs: tuple[int, int], failures: int, owner: Any) -> NoReturn:
    """Replace this process by the payload's program. If that fails, write the error to the pipe `failures` and end. It never returns.

    `outputs` are the descriptors for its standard output and error, `owner` is the `PayloadOwner` as whom it runs, or None.
    """
    try:
        _cut_off(order)
        if owner is not None:
            owner.take()
        os.setsid()
        for number, descriptor in enumerate([] if order.get("is_stager") else outputs, 1):
            os.dup2(descriptor, number)
        if order.get("stdin"):
            os.dup2(os.open(order["stdin"], os.O_RDONLY | os.O_NOCTTY), 0)
        for name, value in order["rlimits"].items():
            _limit(name, value)
        if order.get("refuses_clone3"):
            _beside("seccomp").refuse(clone3=True)
        if order.get("is_stager"):
            os.close(failures)
            _beside("stager").be_stager(order, outputs[0])
        os.execve(_program(order["argv"][0], order["env"]), order["argv"], order["env"])  # noqa: S606 - a user's program, as he asked for it
    except BaseException as error:  # noqa: BLE001 - a process of its own: it writes why, and ends
        failure = [isinstance(error, SetupError), getattr(error, "errno", None), str(error)]
        os.write(failures, json.dumps(failure).encode())
    finally:
        os._exit(127)


def _cut_off(order: dict[str, Any]) -> None:
    if order["has_network"]:
        return
    try:
        _beside("container").leave_network()
    except OSError as error:
        raise SetupError(f"its network cannot be taken away: {error}") from error


def _raise(failure: bytes) -> NoReturn:
    is_setup, number, text = json.loads(failure)
    if is_setup:
        raise SetupError(text)
    raise OSError(number, os.strerror(number)) if number else ValueError(text)


def _limit(name: str, value: int) -> None:
    """Set the resource limit RLIMIT_`name` of this process and its descendants to `value`, but at most to the present hard limit.

    Raise SetupError if it cannot be set.
    """
    if value < 0:  # which the kernel would take for as much as it likes
        raise SetupError(f"its limits cannot be set: {name} to {value}")
    try:
        kind = getattr(resource, f"RLIMIT_{name}")
        ceiling = resource.getrlimit(kind)[1]
        bound = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
        resource.setrlimit(kind, (bound, bound))
    except (AttributeError, OSError, OverflowError, ValueError) as error:
        raise SetupError(f"its limits cannot be set: {name} to {value}: {error}") from error


def _program(name: str, env: dict[str, str]) -> str:
    """Return the path of a program. A name with a slash is returned unchanged; another is searched along PATH of `env`.

    Raise FileNotFoundError if none is found. Executable files are preferred.
    """
    if "/" in name:
        return name
    paths = [f"{directory or '.'}/{name}" for directory in env.get("PATH", os.defpath).split(":")]
    found = [path for path in paths if os.path.isfile(path)]
    if not name or not found:
        raise FileNotFoundError(errno.ENOENT, "no such program")
    return next((path for path in found if os.access(path, os.X_OK)), found[0])


def _stand_guard(held: int, marks: range) -> NoReturn:
    """Be the guard: wait until the shepherd ends, kill all processes that have its marks, and end. It never returns.

    `held` is the read end of a pipe from the shepherd. If the shepherd writes a byte to it, no payload is left, and nothing
    is killed.
    """
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        # Nothing else is held open: the shepherd's end of the pipe least of all.
        os.dup2(held, 0)
        os.closerange(1, os.sysconf("SC_OPEN_MAX"))
        _prctl(PR_SET_NAME, b"wms-guard", 0, 0, 0)
        if not os.read(0, 1):
            _kill_off(marks)
    finally:
        os._exit(0)


def _kill_off(marks: range) -> None:
    """Kill all processes that have these marks, and those that they fork meanwhile, until none is left or SETTLE_GIVE_UP seconds are over."""
    give_up_at = now() + SETTLE_GIVE_UP
    while now() < give_up_at:
        left = [pid for pid, _ in marked(marks) if pid != os.getpid() and _lives(pid)]
        if not left:
            return
        for pid in left:
            send_signal(pid, signal.SIGKILL)
        time.sleep(SETTLE_LONGEST)


def _lives(pid: int) -> bool:
    """Return whether a process exists and is not a zombie. One whose first thread has ended, and no other, lives."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
            return fields[0] != b"Z" or int(fields[17]) > 1
    except OSError:
        return False


def _fault(error: BaseException, order: dict[str, Any]) -> tuple[str, str]:
    """Return a sentence on an error at the start of a payload, and who is at fault: `job` or `node`."""
    if type(error).__name__ == "EncloseError":
        return f"it cannot be isolated: {error}", "node"
    if isinstance(error, SetupError):
        return str(error), "node"
    fault = "node" if getattr(error, "errno", 0) in NODE_FAULTS else "job"
    return _explained(error, order), fault


def _explained(error: BaseException, order: dict[str, Any]) -> str:
    program = order["argv"][0] if order["argv"] else ""
    if isinstance(error, OSError) and error.errno in NODE_FAULTS:
        return f"no process can be made: {error.strerror}"
    if not isinstance(error, OSError):
        return f"{program!r} cannot be started: {error}"
    if error.filename == order["cwd"]:
        return f"the working directory cannot be entered: {error.strerror}"
    if error.errno == errno.ENOENT and os.path.exists(program) and "/" in program:
        return f"{program!r} cannot be started: the interpreter it names is not there"
    own_tmp = "; isolated jobs have a /tmp of their own: send it in the input sandbox"
    texts = {
        errno.ENOENT: "no such program" + (own_tmp if program.startswith(("/tmp/", "/var/tmp/")) else ""),  # noqa: S108
        errno.EACCES: "it is not executable, or lies in a directory that may not be entered",
        errno.ENOEXEC: "it is no program of this machine, and has no #! line that names one",
        errno.E2BIG: "its arguments and environment are too large",
    }
    return f"{program!r} cannot be started: {texts.get(error.errno or 0, str(error.strerror))}"


def _inherit(files: int) -> None:
    """Set the attributes of the shepherd that payloads inherit: umask, no core files, default signals, and a higher OOM score.

    `files` is the limit of open files, which each may raise to the hard one.
    """
    os.umask(UMASK)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(
            number, signal.SIG_DFL
        )  # Python ignores the first two, shells the others in the background
    try:
        # When memory runs out, let the kernel take payloads, the largest first, before the agent.
        with open("/proc/self/oom_score_adj", "wb", buffering=0) as file:
            file.write(b"500")
    except OSError:
        pass


def main() -> None:
    """Run the shepherd until it ends. The module says what the command line gives."""
    agent = socket.socket(fileno=int(sys.argv[1]))
    agent.set_inheritable(False)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    _prctl(PR_SET_NAME, b"wms-shepherd", 0, 0, 0)
    _inherit(int(sys.argv[5]))
    # Collecting would copy every page after every fork, and nothing here is circular for long.
    gc.freeze()
    gc.disable()
    stagers = socket.socket(fileno=int(sys.argv[3]))
    stagers.set_inheritable(False)
    Shepherd(agent, int(sys.argv[2]), stagers, sys.argv[4]).run()


if __name__ == "__main__":
    main()
