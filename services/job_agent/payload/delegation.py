"""The part of the node's cgroups (Linux control groups, version 2) that the batch system delegated to the pilot.

A cgroup with processes of its own cannot share resources out to cgroups below it. So the agent moves itself, and the script
that started it, into a cgroup below its own, AGENT. Beside it each payload gets a cgroup. At its end the agent moves back.

What an agent that was killed left, the next one in the same cgroup removes. A lock on AGENT tells whether an agent lives.
"""

import asyncio
import contextlib
import fcntl
import os
import tempfile
import time
from pathlib import Path
from typing import Final, Self

import structlog

from services.job_agent.payload import cgroup
from services.job_agent.payload.process_control import NotStarted, Processes
from services.job_agent.payload.shepherd_messages import SpawnOrder
from wms.errors import Unavailable
from wms.ids import AttemptId

log = structlog.get_logger()

AGENT: Final = "wms-agent"
"""The name of the cgroup with the agent, the script that started it, and the shepherd."""
PREFIX: Final = "wms-"
NEEDED: Final = ("memory", "pids")
CONTROLLERS: Final = (*NEEDED, "cpu")
"""The kernel's controllers that limit payloads. Processors are not limited if `cpu` is not delegated."""
TRIAL: Final = f"{PREFIX}trial"
END_SECONDS: Final = 5.0
"""The most seconds for which killed processes of a cgroup are waited for."""
ALONE_SECONDS: Final = 1.0
"""The most seconds for which the agent waits until it is alone in its cgroup."""
PAUSE: Final = 0.05


class NotDelegatedError(Exception):
    """The agent can make no cgroups for payloads; the text says why."""


class Delegation:
    """The cgroups of one agent: use it as an `async with` context, in which the agent is in its own.

    If the node delegates none, or `wanted` is False, `fault` says why, payloads get none, and nothing was changed.
    """

    def __init__(self, *, wanted: bool = True) -> None:
        self.fault = "the pilot has not looked yet"
        self._wanted = wanted
        self._base = Path()
        self._lock = -1

    async def __aenter__(self) -> Self:
        self.fault = await asyncio.to_thread(self._opened)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Move the agent back to where it was and remove its cgroups. Nothing happens if there are none."""
        await asyncio.to_thread(self._close)

    def path(self, attempt_id: AttemptId) -> str:
        """Return the directory of the cgroup for an attempt's payload; empty if payloads have none."""
        return "" if self.fault else str(self._base / f"{PREFIX}{attempt_id.job_id}.{attempt_id.epoch}")

    async def prove(self, processes: Processes, directory: Path, limits: dict[str, str]) -> None:
        """Run `true` through the shepherd in a cgroup with these limits. If that fails, give the cgroups up and set `fault`.

        `directory` is that with all jobs' directories.
        """
        if self.fault:
            return
        try:
            await self._run_trial(processes, directory, limits)
        except (NotStarted, Unavailable) as error:
            await self.close()
            self.fault = str(error)

    async def _run_trial(self, processes: Processes, directory: Path, limits: dict[str, str]) -> None:
        with tempfile.TemporaryDirectory(prefix="trial-", dir=directory) as place:
            os.chmod(place, 0o755)  # noqa: PTH101, S103 - the payload may be another user's
            order = SpawnOrder(
                argv=("true",),
                cwd=place,
                env={"PATH": os.defpath},
                stdout=f"{place}/stdout",
                stderr=f"{place}/stderr",
                scratch=place,
                cgroup=str(self._base / TRIAL),
                cgroup_limits=limits,
            )
            await (await processes.spawn(order)).ended

    # --- blocking ---

    def _opened(self) -> str:
        if not self._wanted:
            return "as asked for"
        try:
            self._base = delegated_cgroup()
            self._settle_in(_controllers(self._base))
        except (NotDelegatedError, OSError) as error:
            self._close()
            return str(error)
        return ""

    def _settle_in(self, controllers: list[str]) -> None:
        leaf = self._base / AGENT
        leaf.mkdir(exist_ok=True)
        self._lock = _locked(leaf)
        self._remove_stale()
        for pid in _alone(self._base):
            _write(leaf / "cgroup.procs", str(pid))
        _write(self._base / "cgroup.subtree_control", " ".join(f"+{each}" for each in controllers))

    def _close(self) -> None:
        if self._lock < 0:
            return
        self._remove_stale()
        with contextlib.suppress(OSError):
            shared = _words(self._base / "cgroup.subtree_control")
            _write(self._base / "cgroup.subtree_control", " ".join(f"-{each}" for each in shared))
        for pid in _pids(self._base / AGENT):
            with contextlib.suppress(OSError):
                _write(self._base / "cgroup.procs", str(pid))
        os.close(self._lock)
        self._lock = -1
        if not cgroup.remove(str(self._base / AGENT)):
            log.warning("cgroup not removed", cgroup=str(self._base / AGENT))

    def _remove_stale(self) -> None:
        """Kill and remove all cgroups of payloads: those that an agent left which was killed, or whose processes did not end."""
        for path in self._base.glob(f"{PREFIX}*"):
            if path.name != AGENT and not cgroup.end(str(path), END_SECONDS):
                log.warning("cgroup not removed", cgroup=str(path))


def _alone(base: Path) -> list[int]:
    """Return the pids in a cgroup: this process, those that started it, and Podman's pause process. Blocking.

    What a dead agent left there, such as its shepherd, may still be ending, so this waits for ALONE_SECONDS at most. Raise
    NotDelegatedError if other processes stay.
    """
    family, give_up_at = _ancestors(os.getpid()) | _pause_process(), time.monotonic() + ALONE_SECONDS
    while True:
        present = _pids(base)
        strangers = [pid for pid in present if pid not in family]
        if not strangers:
            return present
        if time.monotonic() > give_up_at:
            raise NotDelegatedError(f"{base} has other processes, such as {strangers[0]}")
        time.sleep(PAUSE)


def delegated_cgroup(proc: Path = Path("/proc")) -> Path:
    """Return the directory of the cgroup that this process was started in. Raise NotDelegatedError if it is none of its own.

    `proc` is the proc file system.
    """
    own = next((line[3:] for line in _lines(proc / "self/cgroup") if line.startswith("0::")), "/")
    mounts = (line.split(" ") for line in _lines(proc / "self/mountinfo"))
    found = next((each for each in mounts if each[each.index("-") + 1] == "cgroup2"), None)
    if found is None:
        raise NotDelegatedError("cgroups of version 2 are not mounted")
    root, mounted = found[3], Path(found[4])
    if own.startswith("/..") or not (own == root or own.startswith(root.rstrip("/") + "/")):
        raise NotDelegatedError(f"the pilot's cgroup {own} is not visible")
    base = mounted / own[len(root.rstrip("/")) :].lstrip("/")
    base = base.parent if base.name == AGENT else base
    if base == mounted and not (base / "cgroup.type").exists():
        raise NotDelegatedError("the pilot has no cgroup of its own")
    return base


def _controllers(base: Path) -> list[str]:
    """Return which of the kernel's controllers payloads can have below a cgroup. Raise NotDelegatedError if needed ones are not there."""
    found = _words(base / "cgroup.controllers")
    if missing := [each for each in NEEDED if each not in found]:
        raise NotDelegatedError(f"no controller {' or '.join(missing)} in {base}")
    return [each for each in CONTROLLERS if each in found]


def _locked(directory: Path) -> int:
    """Open and lock a directory, until the descriptor is closed. Raise NotDelegatedError if another process has locked it."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise NotDelegatedError(f"another agent uses {directory.parent}") from None
    return descriptor


def _ancestors(pid: int) -> set[int]:
    """Return the pid and those of its parent, the parent's parent, and so on."""
    found = set[int]()
    while pid and pid not in found:
        found.add(pid)
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        pid = int(stat.rpartition(b")")[2].split()[1])
    return found


def _pause_process() -> set[int]:
    """Return the pid of the process in which Podman keeps the namespaces of a user who is not root; nothing if there is none.

    The first Podman of the user starts it, such as the agent's trial, and it stays when that Podman ends.
    """
    directory = os.environ.get("XDG_RUNTIME_DIR") or f"/tmp/podman-run-{os.getuid()}"  # noqa: S108 - Podman's own choice
    try:
        return {int(Path(directory, "libpod/tmp/pause.pid").read_text())}
    except (OSError, ValueError):
        return set()


def _lines(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8", "surrogateescape").splitlines()


def _words(path: Path) -> list[str]:
    return path.read_text().split()


def _pids(cgroup_directory: Path) -> list[int]:
    return [int(word) for word in _words(cgroup_directory / "cgroup.procs")]


def _write(path: Path, text: str) -> None:
    # The text's meaning is the kernel's: one write, or it is refused.
    with path.open("wb", buffering=0) as file:
        try:
            file.write(text.encode())
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None
