"""A container: a child process of the shepherd that runs one payload after another, each in its own namespaces.

Only the shepherd loads this module, and neither has dependencies. The process is the init of a PID namespace: when it ends,
the kernel ends all processes in it. Each payload gets a new IPC namespace and a copy of a mount namespace that was made
once. In it the system is read-only and the hidden directories are empty. The payload can write to its own directory, its
`/tmp` and a bounded `/dev/shm`. The network is the node's, or a network namespace with nothing but a loopback device of the
payload's own. A payload has no privileges and can gain none. If the pilot runs as root, payloads run as another user.
Otherwise they run as the pilot's user in a user namespace without capabilities.

The process is kept for the next payload once all processes of this one have ended. To make a new one takes ten times as long.

The shepherd and the container exchange JSON, one object a packet. An order comes with the two pipes for the payload's
output. A large order comes in a file in memory:

    {"is": "ready", "network_fault"} or {"is": "failed", "error"}
    {"is": "started"}           with the payload's pid as the sender's credentials, so that the kernel translates it
    {"is": "failed_to_start", "error", "fault"}
    {"is": "stray", "user_seconds", "system_seconds"}
    {"is": "ended", "status", "wall_seconds"}          of its main process, if others are left
    {"is": "settled", "status", "wall_seconds", "user_seconds", "system_seconds", "max_rss_bytes",
     "is_untouched", "is_free", "is_changed"}    the last: the payload changed this process, so it takes no other one

Longer than 400 lines, because the shepherd loads it by its path: a second file would be a second one to find and to load
while a payload waits for its container.
"""

# pathlib and contextlib would double the time to start.
# ruff: noqa: PTH121, PTH116, PTH103, PTH112, PTH120, PTH123, SIM105

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import platform
import resource
import select
import signal
import socket
import struct
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn

    Spawn = Callable[[dict[str, Any], int, int, "PayloadOwner | None"], int]
    Explain = Callable[[BaseException, dict[str, Any]], tuple[str, str]]
    Refuse = Callable[..., None]
    Look = Callable[[dict[str, Any]], bool]

_CLONE_CALLS = {"x86_64": 56, "aarch64": 220, "ppc64le": 120}
NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_PIDS = 0x00020000, 0x08000000, 0x10000000, 0x20000000
NEW_NETWORK = 0x40000000

RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, RECURSIVE, SLAVE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 19
_KEPT_FLAGS = {"nosuid": NOSUID, "nodev": NODEV, "noexec": NOEXEC}

PR_SET_PDEATHSIG, PR_SET_NAME, PR_SET_NO_NEW_PRIVS = 1, 15, 38
EMPTY = "mode=755,size=1m,nr_inodes=4k"
"""The mount options (tmpfs) of the empty file system that covers a hidden directory.

It becomes read-only once the parts that payloads may see are mounted in it.
"""
TEMPORARY, SHARED_MEMORY = ("/tmp", "/var/tmp"), "/dev/shm"  # noqa: S108 - what they are elsewhere
REPLACED = (*TEMPORARY, SHARED_MEMORY)
TASKS_FILE, TASKS_KERNEL = "/proc/sys/kernel/pid_max", (6, 14)
"""The file with the limit of processes and threads, and the first kernel (6.14) where it applies to one PID namespace.

On older kernels it applies to the whole machine, so no limit is set there.
"""
SEGMENTS_FILE = "/proc/sys/kernel/shmall"
"""The file with the limit of shared memory of System V in pages, which each IPC namespace has for itself."""
IPC_LIMITS = {"/proc/sys/kernel/sem": "250 32000 32 128", "/proc/sys/kernel/msgmni": "128"}
"""The limits of semaphores and queues of System V, as Linux had them before 3.19: some MiB in all. Those since allow 64 GiB."""
FILES_MOST = 65_536
"""The most files that a process of a payload may have open: no more than half of what the pilot may.

The kernel counts the descriptors that are on their way in sockets for an account, and refuses more to a sender whose own
limit is below that. So payloads stop before the pilot's processes do, which send with all of theirs.
"""
MARK_LIMIT = resource.RLIMIT_RTTIME
"""The limit whose hard value is a payload's mark (see shepherd.py)."""
LIMITS = sorted(
    {getattr(resource, each) for each in dir(resource) if each.startswith("RLIMIT_")} - {MARK_LIMIT}
)
TASKS_LEAST = 1_024
"""The smallest limit of processes and threads that is set; smaller ones are raised to it.

The kernel reserves the first 300 process ids.
"""
ORDER_BYTES = 64 * 1024 * 1024
PACKET_BYTES = 16 * 1024
LOOK_AGAIN_MS = 20
"""Milliseconds between two looks whether all processes have ended that have a grace."""
GET_FLAGS, SET_FLAGS, IS_UP = 0x8913, 0x8914, 1
"""The requests of ioctl(2) that read and set the flags of a network device, and the flag of one that is in use."""
_DEVICE = struct.Struct("16sh22x")
_CREDENTIALS = struct.Struct("3i")
_DESCRIPTOR = struct.Struct("i")

_libc = ctypes.CDLL(None, use_errno=True)
_python_libc = ctypes.PyDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount a file system by mount(2): `kind` is its type. Raise OSError, with the target in its text, if that fails."""
    words = [word.encode("utf-8", "surrogateescape") or None for word in (source, target, kind)]
    _checked(_libc.mount(*words, ctypes.c_ulong(flags), options.encode() or None), f"mount on {target}")


def _unmount(path: str) -> None:
    _checked(_libc.umount2(path.encode("utf-8", "surrogateescape"), 0), f"unmount {path}")


def _unshare(flags: int) -> None:
    _checked(_libc.unshare(flags), "unshare")


def _enter(descriptor: int, kind: int) -> None:
    _checked(_libc.setns(descriptor, kind), "setns")


def clone(flags: int) -> int:
    """Fork this process into the new namespaces that `flags` of clone(2) name. Return the child's pid, or 0 in the child.

    Raise OSError if the kernel refuses, or the number of the system call is not known for this kind of processor.
    """
    call = _CLONE_CALLS.get(platform.machine())
    if call is None:
        raise OSError(errno.ENOSYS, "no namespaces are known of this kind of machine")
    # Fork's own arguments are all zero. Not released: the interpreter's lock has to be this thread's in the child.
    zero = ctypes.c_long(0)
    return _checked(
        _python_libc.syscall(
            ctypes.c_long(call), ctypes.c_long(flags | signal.SIGCHLD), zero, zero, zero, zero
        ),
        "clone",
    )


def leave_network() -> None:
    """Move this process to a new network namespace, in which there is nothing but a loopback device of its own.

    Abstract sockets of the node are not there either. Raise OSError if the kernel refuses.
    """
    _unshare(NEW_NETWORK)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        found = fcntl.ioctl(any_socket, GET_FLAGS, _DEVICE.pack(b"lo", 0))
        fcntl.ioctl(any_socket, SET_FLAGS, _DEVICE.pack(b"lo", _DEVICE.unpack(found)[1] | IS_UP))


def start(
    settings: dict[str, Any], spawn: Spawn, explain: Explain, refuse: Refuse, is_untouched: Look
) -> tuple[int, socket.socket]:
    """Start a container for payloads. Return the pid of its first process, and the socket to it for orders and messages.

    `settings` say which directories are hidden and as which user payloads run. `spawn` starts a payload's program. `explain`
    returns an error's text and whether the job or the node is at fault. `refuse` is that of seccomp.py. `is_untouched` is that
    of stager.py. The socket does not block. Raise OSError if the kernel refuses.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    ids = os.getuid(), os.getgid()
    flags = NEW_MOUNTS | NEW_IPC | NEW_PIDS | (0 if settings["uid"] is not None else NEW_USER)
    init = Init(theirs, settings, spawn, explain, refuse=refuse, is_untouched=is_untouched)
    try:
        pid = clone(flags)
    except OSError:
        ours.close()
        theirs.close()
        raise
    if pid == 0:
        _be_init(init, ids)
    theirs.close()
    ours.setblocking(False)
    return pid, ours


def send(container: socket.socket, order: dict[str, Any], stdout: int, stderr: int) -> None:
    """Send the order to start a payload to a container. `stdout` and `stderr` are the write ends of pipes for its output.

    Raise OSError if the container has ended.
    """
    data = json.dumps(order).encode()
    if len(data) <= PACKET_BYTES:
        _send(container, data, [stdout, stderr])
        return
    file = os.memfd_create("order", os.MFD_CLOEXEC)
    try:
        os.write(file, data)
        _send(container, b"order", [stdout, stderr, file])
    finally:
        os.close(file)


def send_end(container: socket.socket, mark: int, at: float) -> None:
    """Tell a container when what is left of the payload with this mark is to be killed, in seconds since boot.

    Raise OSError if the container has ended.
    """
    container.send(json.dumps({"mark": mark, "ends_at": at}).encode(), socket.MSG_NOSIGNAL)


def _send(container: socket.socket, data: bytes, descriptors: list[int]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        socket.send_fds(container, [data], descriptors)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def receive(container: socket.socket) -> tuple[dict[str, Any], int] | None:
    """Return the next message of a container, and the pid with which it was sent: the payload's if one started, else the container's.

    Return None if the container has ended. Raise BlockingIOError if there is no message yet.
    """
    try:
        data, rest, _, _ = container.recvmsg(65_536, socket.CMSG_SPACE(_CREDENTIALS.size))
    except ConnectionResetError:
        return None
    if not data:
        return None
    named = [_CREDENTIALS.unpack(each[2][: _CREDENTIALS.size])[0] for each in rest]
    return json.loads(data), named[0] if named else 0


def _be_init(init: Init, ids: tuple[int, int]) -> NoReturn:
    """Be the first process of a container: run payloads until the shepherd ends, then end. It never returns.

    `ids` are the user and group of the pilot.
    """
    try:
        init.settle_in(ids)
        init.serve()
    except BaseException as error:  # noqa: BLE001 - a separate process: it reports the error and ends
        init.tell("failed", error=str(error))
    finally:
        os._exit(0)


class Init:
    """The first process of a container. It makes the namespaces and starts one payload after another."""

    def __init__(
        self,
        shepherd: socket.socket,
        settings: dict[str, Any],
        spawn: Spawn,
        explain: Explain,
        *,
        refuse: Refuse,
        is_untouched: Look,
    ) -> None:
        self._shepherd = shepherd
        self._jobs = str(settings["jobs"])
        self._hidden = [str(each) for each in settings["hidden"]]
        self._shown = [str(each) for each in settings["shown"]]
        self._shm_bytes = int(settings["shm_bytes"])
        self._owner = None if settings["uid"] is None else PayloadOwner(settings["uid"], settings["gid"])
        self._tries_network = settings["tries_network"]
        self._spawn = spawn
        self._explain = explain
        self._refuse = refuse
        self._given: list[tuple[int, int]] = []
        """The limits of this process before the first payload."""
        self._may_clone3 = True
        """Whether this process can fork into cgroups, and what it starts must be refused that call."""
        self._is_untouched = is_untouched
        self._template = -1
        self._open_jobs = -1
        """A descriptor of the directory with all jobs' directories, through which it is writable.

        Payloads cannot reach it by its path: in their mount namespaces that path is covered.
        """
        self._covers: set[int] = set()
        """The device numbers of the empty file systems that cover hidden directories."""
        self._mount_points = -1
        """A descriptor of the empty directory that covers the directory with all jobs' directories. Mount points of payloads are made in it."""
        self._made: list[str] = []
        self._shown_temporary = [each for each in self._shown if _is_temporary(each)]
        # Neither the jobs' directories nor the pilot's Python can be below a `/tmp` that is the scratch directory.
        self._is_in_memory = bool(self._shown_temporary) or _is_temporary(self._jobs)

    def tell(self, what: str, pid: int = 0, **more: object) -> None:
        """Send a message to the shepherd. `what` is the kind of message and `more` its fields. If the shepherd has ended, end this process.

        `pid` is the process that the message is about; the kernel translates it for the shepherd. 0: this process.
        """
        sender = _CREDENTIALS.pack(pid or os.getpid(), os.getuid(), os.getgid())
        data = json.dumps({"is": what, **more}).encode()
        try:
            self._shepherd.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, sender)])
        except OSError:
            os._exit(0)

    # --- once ---

    def settle_in(self, ids: tuple[int, int]) -> None:
        """Prepare this process and the mount namespace of which each payload gets a copy. Then report that the container is ready.

        `ids` are the pilot's user and group, as they are outside of the new user namespace. Raise OSError or EncloseError if
        the kernel refuses.
        """
        self._be_alone()
        _bound_files()
        if self._owner is None:
            map_ids(*ids)
        else:
            os.setgroups([])
        _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        _libc.prctl(PR_SET_NAME, b"wms-container", 0, 0, 0)
        before = os.umask(0o022)
        self._make_template()
        os.umask(before)
        # A trial, so that a machine without such namespaces is known before the first payload.
        self._enclose({"cwd": self._jobs, "scratch": self._jobs})
        if self._owner is not None:
            self._owner.lend(lambda: 0)
        self._leave()
        self._refuse(clone3=False)
        self._given = _limits()
        self.tell("ready", network_fault=_network_fault() if self._tries_network else "")

    def _be_alone(self) -> None:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        kept = self._shepherd.fileno()
        os.closerange(3, kept)
        os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))

    def _make_template(self) -> None:
        mount("", "/", flags=RECURSIVE | SLAVE)
        make_read_only()
        # Without this process: as the same user, a payload could write to its files there, as to its OOM score.
        mount("proc", "/proc", "proc", NOSUID | NODEV | NOEXEC, "hidepid=2")
        _hide_terminals()
        if not is_below(self._jobs, "/run"):
            hide_run()
        self._cover_hidden()
        self._template = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)

    def _cover_hidden(self) -> None:
        """Mount empty file systems over the hidden directories, and mount in these, read-only, the parts that payloads may see.

        Each payload's mount namespace is a copy of the result.
        """
        hidden = _outermost(self._hidden + self._barred([f"{self._jobs}/any", *self._shown]))
        shown = {
            path: os.open(path, os.O_PATH | os.O_CLOEXEC)
            for path in self._shown
            if any(is_below(path, each) for each in hidden)
        }
        mount(self._jobs, self._jobs, flags=BIND)
        self._open_jobs = os.open(self._jobs, os.O_PATH | os.O_CLOEXEC)
        _remount(self._jobs, writable=True)
        for path in hidden:
            if cover(path):
                self._finish_cover(path, [each for each in shown if is_below(each, path)])
        for path, descriptor in shown.items():
            bind(descriptor, path, writable=False)
        _close(shown.values())

    def _finish_cover(self, path: str, shown: list[str]) -> None:
        for each in shown:
            os.makedirs(each, mode=0o755, exist_ok=True)
        if is_below(self._jobs, path):
            os.makedirs(self._jobs, mode=0o755, exist_ok=True)
            self._mount_points = os.open(self._jobs, os.O_PATH | os.O_CLOEXEC)
            # The writable file system lies below this mount and is not visible.
            mount(path, path, flags=BIND)
        mount("", path, flags=REMOUNT | BIND | RDONLY | NOSUID | NODEV)
        self._covers.add(os.stat(path).st_dev)

    # --- for each payload ---

    def serve(self) -> None:
        """Run one payload after another, as the shepherd orders, until the shepherd ends."""
        while True:
            data, descriptors = _received(self._shepherd)
            if descriptors:
                self._run(json.loads(data), descriptors)
            elif b"ends_at" not in data:  # or else the end of a payload that ended before it was told
                return

    def _run(self, order: dict[str, Any], descriptors: list[int]) -> None:
        began_at = time.monotonic()
        try:
            self._enclose(order)
            pid = self._start(order, *descriptors)
        except Exception as error:  # noqa: BLE001 - one payload's fault, or the node's
            text, fault = self._explain(error, order)
            self.tell("failed_to_start", error=text, fault=fault)
            self._leave()
            return
        finally:
            _close(descriptors)
        self.tell("started", pid)
        self._see_off(pid, began_at, order)
        self._leave()

    def _start(self, order: dict[str, Any], stdout: int, stderr: int) -> int:
        _bound_tasks(order.get("tasks", 0))
        # No payload runs as long as the call is allowed: one in a cgroup refuses it to itself.
        order["refuses_clone3"] = bool(order["cgroup"])
        if self._may_clone3 and not order["cgroup"]:
            self._refuse(clone3=True)
            self._may_clone3 = False
        return self._spawn(order, stdout, stderr, self._owner)

    def _see_off(self, main: int, began_at: float, order: dict[str, Any]) -> None:
        """Wait for the payload's main process, kill its other processes, and report what all of them used and left.

        `main` is its pid, `began_at` its start in seconds of the monotonic clock.
        """
        used = _Used()
        pid, status, usage = os.wait4(-1, 0)
        while pid != main:
            used.add(usage)
            self.tell("stray", user_seconds=usage.ru_utime, system_seconds=usage.ru_stime)
            pid, status, usage = os.wait4(-1, 0)
        used.add(usage)
        how: dict[str, Any] = {"status": status, "wall_seconds": time.monotonic() - began_at}
        self._leave_grace(order["mark"], used)
        # Every process in this namespace is a child of this process, or a descendant of one.
        if _has_children() and _kill_all():
            self.tell("ended", **how)
        _reap_all(used)
        self.tell(
            "settled",
            **how,
            user_seconds=used.user_seconds,
            system_seconds=used.system_seconds,
            max_rss_bytes=used.max_rss_bytes,
            is_changed=_limits() != self._given or resource.getrlimit(MARK_LIMIT)[1] != order["mark"] - 1,
            **({"is_untouched": False, "is_free": False} if order["is_stager"] else self._look(order)),
        )

    def _leave_grace(self, mark: int, used: _Used) -> None:
        """Wait for the processes that the payload's main one left, until they have ended or their grace is over.

        They have none unless the shepherd said when the payload ends.
        """
        listening = select.poll()
        listening.register(self._shepherd, select.POLLIN)
        pause, ends_at = 0, 0.0
        while _has_children():
            while listening.poll(pause):
                data, _ = _received(self._shepherd)
                if not data:
                    os._exit(0)
                told = json.loads(data)
                ends_at, pause = (told["ends_at"] if told["mark"] == mark else ends_at), 0
            if time.clock_gettime(time.CLOCK_BOOTTIME) >= ends_at:
                return
            _reap_ended(used)
            pause = LOOK_AGAIN_MS

    def _look(self, order: dict[str, Any]) -> dict[str, bool]:
        """Return whether the payload left its directories as they were made, and whether no process has them open any more.

        The first is found out under the payload's account. A descriptor that was passed to a payload in another container
        keeps the mounts from being removed.
        """
        untouched: list[bool] = []

        def look() -> int:
            untouched.append(self._is_untouched(order))
            return 0

        look() if self._owner is None else self._owner.lend(look)
        try:
            for path in (
                *(each for each in TEMPORARY if self._has_scratch(each, order)),
                order["scratch"],
                order["cwd"],
            ):
                _unmount(path)
        except OSError:
            return {"is_untouched": untouched[0], "is_free": False}
        return {"is_untouched": untouched[0], "is_free": True}

    def _has_scratch(self, path: str, order: dict[str, Any]) -> bool:
        return not self._is_in_memory and os.path.isdir(path) and os.path.samefile(path, order["scratch"])

    def _leave(self) -> None:
        """Return to the container's own mount namespace, and remove the mount points of the payload that has ended.

        The kernel then frees the payload's mounts.
        """
        _enter(self._template, NEW_MOUNTS)
        for path in reversed(self._made):
            os.rmdir(path, dir_fd=self._mount_points)
        self._made.clear()

    def _enclose(self, order: dict[str, Any]) -> None:
        """Enter new mount and IPC namespaces for a payload and mount its directories. Raise EncloseError if that fails."""
        before = os.umask(0o022)
        try:
            # In the copied namespace the working directory is the only way to the covered directory of the jobs.
            os.chdir(self._open_jobs)
            _unshare(NEW_MOUNTS | NEW_IPC)
            self._mount(order["cwd"], order["scratch"])
            _bound_ipc(order.get("memory", 0))
        except OSError as error:
            raise EncloseError(str(error)) from error
        finally:
            os.umask(before)

    def _mount(self, work: str, scratch: str) -> None:
        own = {path: self._below_jobs(path) for path in (work, scratch)}
        opened = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in self._shown_temporary}
        self._replace_shared("" if self._is_in_memory else own[scratch])
        self._hide_the_new()
        for path, descriptor in opened.items():
            os.makedirs(path, mode=0o755, exist_ok=True)
            bind(descriptor, path, writable=False)
        _close(opened.values())
        for path, relative in own.items():
            self._make_mount_point(path, relative)
            mount(relative, path, flags=BIND)

    def _below_jobs(self, path: str) -> str:
        """Return the path of a payload's directory relative to the directory with all jobs' directories, `.` for that itself.

        Raise EncloseError if it is not below it. The result is used while that directory is the working directory.
        """
        if not is_below(path, self._jobs):
            raise EncloseError(f"{path} is not below {self._jobs}")
        return path[len(self._jobs) :].strip("/") or "."

    def _make_mount_point(self, path: str, relative: str) -> None:
        if _is_temporary(self._jobs):
            os.makedirs(path, mode=0o755, exist_ok=True)
            return
        above, _, name = relative.rpartition("/")
        if above and above not in self._made:
            self._make_mount_point("", above)
        if name != ".":
            os.mkdir(relative, 0o755, dir_fd=self._mount_points)
            self._made.append(relative)

    def _hide_the_new(self) -> None:
        """Mount empty file systems over hidden directories that were made or replaced since the container was started."""
        for path in self._hidden:
            if path not in REPLACED and _is_uncovered(path, self._covers) and cover(path):
                mount("", path, flags=REMOUNT | BIND | RDONLY | NOSUID | NODEV)

    def _replace_shared(self, scratch: str) -> None:
        """Mount the payload's own directories over `/tmp`, `/var/tmp` and `/dev/shm`.

        `scratch` is mounted over the first two; if it is empty, they get file systems in memory. `/dev/shm` is always in
        memory.
        """
        for each in REPLACED:
            if not os.path.isdir(each):
                continue
            if not scratch or each == SHARED_MEMORY:
                mount("tmpfs", each, "tmpfs", NOSUID | NODEV, f"mode=1777,size={self._shm_bytes}")
            else:
                mount(scratch, each, flags=BIND)

    def _barred(self, paths: Iterable[str]) -> list[str]:
        """Return, for each path, the uppermost directory above it that not every user may pass. Paths without one are left out.

        The result is empty if payloads run as the pilot's own user, who may pass them.
        """
        return [] if self._owner is None else [bar for path in paths if (bar := first_bar(path)) is not None]


class PayloadOwner:
    """The user and group as which payloads run, if the pilot runs as root."""

    def __init__(self, uid: int, gid: int) -> None:
        self._uid = uid
        self._gid = gid

    def lend(self, spawn: Callable[[], int]) -> int:
        """Call `spawn`, which starts a program, as this user, and return its result. The program cannot become root again."""
        # The program starts with this process's ids. The saved ids allow the return to root; the program does not inherit them.
        os.setresgid(self._gid, self._gid, 0)
        os.setresuid(self._uid, self._uid, 0)
        try:
            return spawn()
        finally:
            os.setresuid(0, 0, 0)
            os.setresgid(0, 0, 0)
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # forgotten with the change

    def take(self) -> None:
        """Make this process one of this user, for good. Raise OSError if that is forbidden."""
        os.setresgid(self._gid, self._gid, self._gid)
        os.setresuid(self._uid, self._uid, self._uid)


class EncloseError(Exception):
    """The namespaces or mounts for a payload could not be made. The node is at fault, not the job."""


class _Used:
    """The resources that ended processes of a payload used: CPU time in seconds, and the largest process's memory in bytes."""

    def __init__(self) -> None:
        self.user_seconds = 0.0
        self.system_seconds = 0.0
        self.max_rss_bytes = 0

    def add(self, usage: Any) -> None:
        self.user_seconds += usage.ru_utime
        self.system_seconds += usage.ru_stime
        self.max_rss_bytes = max(self.max_rss_bytes, usage.ru_maxrss * 1024)


def _received(link: socket.socket) -> tuple[bytes, list[int]]:
    """Wait for an order of the shepherd. Return it with the write ends of the two output pipes; no descriptors: the shepherd has ended."""
    # Not by `recv_fds`, which forgets the flag in Python 3.11.
    space = socket.CMSG_SPACE(3 * _DESCRIPTOR.size)
    data, rest, _, _ = link.recvmsg(PACKET_BYTES, space, socket.MSG_CMSG_CLOEXEC)
    numbers = [number for each in rest for (number,) in _DESCRIPTOR.iter_unpack(each[2])]
    if len(numbers) == 3:
        data = os.pread(numbers[2], ORDER_BYTES, 0)
        os.close(numbers.pop())
    return data, numbers


def _network_fault() -> str:
    """Find out in a fork whether a process can leave the node's network. Return why not; empty if it can."""
    pid = os.fork()
    if pid == 0:
        try:
            leave_network()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno or errno.EPERM)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return os.strerror(code) if code else ""


def _kill_all() -> bool:
    """Send SIGKILL to all other processes in this PID namespace; return whether there were any. It does not wait for their ends."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _reap_ended(used: _Used) -> None:
    try:
        while (found := os.wait4(-1, os.WNOHANG))[0]:
            used.add(found[2])
    except ChildProcessError:
        return


def _reap_all(used: _Used) -> None:
    while True:
        try:
            _, _, usage = os.wait4(-1, 0)
        except ChildProcessError:
            return
        used.add(usage)


def _limits() -> list[tuple[int, int]]:
    """Return the limits of this process, which all that it starts inherits, but for its mark.

    Where payloads run as the pilot's user, one can lower those of the first process in its namespace by prlimit(2). The kernel
    refuses it the rest, such as the priority, as it has fewer capabilities.
    """
    return [resource.getrlimit(each) for each in LIMITS]


def _bound_tasks(most: int) -> None:
    """Limit the processes and threads of this PID namespace to `most`; 0: no limit.

    Nothing is done if the kernel has no such limit for a namespace, or refuses it: the agent counts the processes, too.
    """
    if most and COUNTS_TASKS:
        _write_if_allowed(TASKS_FILE, str(max(most, TASKS_LEAST)))


def files_of_payload(soft: int, hard: int) -> tuple[int, int]:
    """Return the two limits of open files for a payload from those of its pilot: see FILES_MOST."""
    most = FILES_MOST if hard == resource.RLIM_INFINITY else min(hard // 2, FILES_MOST)
    return most if soft == resource.RLIM_INFINITY else min(soft, most), most


def _bound_files() -> None:
    """Limit the open files of this process, and of each that it starts, to those of a payload."""
    limits = files_of_payload(*resource.getrlimit(resource.RLIMIT_NOFILE))
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def _bound_ipc(most: int) -> None:
    """Limit the shared memory of System V in this IPC namespace to `most` bytes (0: no limit), and its semaphores and queues.

    All of these stay when nobody uses them. Nothing is done if the pilot is not root: the agent then counts the memory that is
    mapped.
    """
    if most:
        _write_if_allowed(SEGMENTS_FILE, str(most // os.sysconf("SC_PAGE_SIZE")))
    for path, limits in IPC_LIMITS.items():
        _write_if_allowed(path, limits)


def _write_if_allowed(path: str, text: str) -> None:
    try:
        with open(path, "w") as file:
            file.write(text)
    except OSError:
        pass  # more than the machine's own bound, or forbidden: the agent counts, too


def _kernel() -> tuple[int, ...]:
    words = platform.release().split("-")[0].split(".")
    return tuple(int(word) for word in words[:2] if word.isdigit())


COUNTS_TASKS = _kernel() >= TASKS_KERNEL


def map_ids(uid: int, gid: int) -> None:
    """Map the user `uid` and the group `gid` to themselves in this process's new user namespace. Other ids have no rights there."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def make_read_only() -> None:
    """Make every mount of this namespace read-only. Raise OSError if that fails for the root; other failures are ignored."""
    with open("/proc/self/mountinfo", "rb") as file:
        lines = file.read().decode("utf-8", "surrogateescape").splitlines()
    for line in lines:
        fields = line.split(" ")
        path, words = _unescaped(fields[4]), fields[5].split(",")
        flags = REMOUNT | BIND | RDONLY
        for word in words:
            flags |= _KEPT_FLAGS.get(word, 0)
        try:
            if "ro" not in words:
                mount("", path, flags=flags)
        except OSError:
            if path == "/":
                raise


def _unescaped(text: str) -> str:
    for code, letter in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, letter)
    return text


def _hide_terminals() -> None:
    try:
        mount("devpts", "/dev/pts", "devpts", NOSUID | NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    except OSError:
        pass  # none here


def hide_run() -> None:
    """Cover `/run`, where the node's services have their sockets, with an empty file system.

    The directory with the DNS resolver's configuration stays visible.
    """
    if not os.path.isdir("/run"):
        return
    resolver = os.path.dirname(os.path.realpath("/etc/resolv.conf"))
    kept = os.open(resolver, os.O_PATH | os.O_CLOEXEC) if is_below(resolver, "/run") else -1
    mount("tmpfs", "/run", "tmpfs", NOSUID | NODEV, EMPTY)
    if kept >= 0:
        os.makedirs(resolver, exist_ok=True)
        bind(kept, resolver, writable=False)
        os.close(kept)
    mount("", "/run", flags=REMOUNT | BIND | RDONLY | NOSUID | NODEV)


def cover(path: str, options: str = EMPTY) -> bool:
    """Mount an empty file system over a directory, with these options of tmpfs. Return False if there is none at this path."""
    if not os.path.isdir(path):
        return False
    mount("tmpfs", path, "tmpfs", NOSUID | NODEV, options)
    return True


def bind(descriptor: int, target: str, *, writable: bool) -> None:
    """Mount the directory or file of a descriptor at the path `target`. Raise OSError if the kernel refuses."""
    mount(f"/proc/self/fd/{descriptor}", target, flags=BIND)
    _remount(target, writable=writable)


def _remount(target: str, *, writable: bool) -> None:
    flags = os.statvfs(target).f_flag & (NOSUID | NODEV | NOEXEC)
    mount("", target, flags=REMOUNT | BIND | flags | (0 if writable else RDONLY))


def is_below(path: str, above: str) -> bool:
    """Return whether a path is that of a directory, or of something in it."""
    return path == above or path.startswith(above.rstrip("/") + "/")


def _is_uncovered(path: str, covers: set[int]) -> bool:
    try:
        return os.stat(path).st_dev not in covers
    except OSError:
        return False  # not there


def _is_temporary(path: str) -> bool:
    return any(is_below(path, each) for each in TEMPORARY)


def _outermost(paths: Iterable[str]) -> list[str]:
    found: list[str] = []
    for path in sorted(set(paths)):
        if not any(is_below(path, above) for above in found):
            found.append(path)
    return found


def first_bar(path: str) -> str | None:
    """Return the uppermost directory above `path` that not every user may pass (its mode lacks x for others); None if there is none."""
    names = path.strip("/").split("/")
    above = ["/" + "/".join(names[:depth]) for depth in range(1, len(names))]
    return next((each for each in above if not os.stat(each).st_mode & 0o001), None)


def _close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
