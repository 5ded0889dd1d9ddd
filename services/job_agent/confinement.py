"""Starts a pilot on this machine in a confinement: namespaces in which it sees what it needs, and nothing of the system that sent it.

`python -m services.job_agent.confinement SETTINGS COMMAND...` runs the command of a job agent, with an `OwnConfinement` as JSON. Three
processes take part. The *keeper* is this one: it stays outside, passes SIGTERM on, and ends the pilot when the system on this
machine ends. The *init* is the first process of the pilot's PID namespace; it makes the pilot's view of the files. The *pilot*
is the job agent.

The view is read-only. The directories to hide, `/tmp`, `/run` and `/dev/shm` are empty in it. The pilot's own directory and the
directories of files by URL can be written to. Where root starts it, the pilot is root of a user namespace over the user ids from
`FIRST_ID` on: ids that no account has, so it can change its user for payloads, and is nobody to the rest of the machine.
Otherwise it is its user in a user namespace, without capabilities. The mounts belong to the init's user namespace or are of
before, so a pilot cannot take the view away. It sees, signals and traces no process but its own.
"""

# Paths are texts here, as the system calls take them.
# ruff: noqa: PTH103, PTH112, PTH120, PTH123

import ctypes
import json
import os
import select
import signal
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

import msgspec

from services.job_agent.payload import container
from services.job_agent.payload.container import (
    NEW_IPC,
    NEW_MOUNTS,
    NEW_PIDS,
    NEW_USER,
    NODEV,
    NOSUID,
    RDONLY,
)
from wms.dispatch.confinement import FIRST_ID, IDS, UNCONFINED, OwnConfinement
from wms.embedded.lifeline import Lifeline
from wms.errors import Unavailable

PRIVATE = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - what they are elsewhere
"""Directories that are empty in the view and can be written to, in memory."""
PRIVATE_OPTIONS = "mode=1777,size=64m"
SCRATCH = "scratch"
"""The name of the pilot's directory for temporary files, in its own."""
UNUSABLE = 70
"""The exit code if a pilot has to be confined and cannot be."""
PR_SET_DUMPABLE = 4
_libc = ctypes.CDLL(None, use_errno=True)


class ConfinementError(Exception):
    """The pilot cannot be confined; the text says why."""


def run(settings: OwnConfinement, command: Sequence[str]) -> int:
    """Run a pilot by this command to its end. Return its exit code, or minus the number of the signal that ended it.

    Raise ConfinementError if it has to be confined and cannot be.
    """
    if settings.mode != "none":
        try:
            return _kept(settings, command, confined=True)
        except (ConfinementError, OSError) as error:
            if settings.mode == "required":
                raise ConfinementError(str(error)) from error
            sys.stderr.write(f"{UNCONFINED}{error}\n")
            sys.stderr.flush()
    return _kept(settings, command, confined=False)


# --- the keeper -----------------------------------------------------------------------------------


def _kept(settings: OwnConfinement, command: Sequence[str], *, confined: bool) -> int:
    orders, told = os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC)
    flags = (NEW_MOUNTS | NEW_PIDS | NEW_IPC | (NEW_USER if os.geteuid() else 0)) if confined else 0
    ids = os.geteuid(), os.getegid()
    pid = container.clone(flags)
    if pid == 0:
        os.close(orders[1])
        os.close(told[0])
        _be_init(settings, command, orders[0], told[1], ids if confined else None)
    os.close(orders[0])
    os.close(told[1])
    try:
        return _minded(settings, told[0], orders[1])
    finally:
        # Closed, it has the init end, and with it the pilot.
        os.close(orders[1])
        os.close(told[0])
        os.waitpid(pid, 0)


def _minded(settings: OwnConfinement, told: int, orders: int) -> int:
    """Wait for the end of the pilot, as the init tells it, and pass SIGTERM on. Return its exit code, or minus a signal's number.

    Raise ConfinementError with the reason if the init could not start the pilot.
    """
    woken, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    poll = select.poll()
    watched = [told, woken]
    if settings.lifeline:
        try:
            watched.append(Lifeline.open(Path(settings.lifeline)).fileno())
        except Unavailable:
            return -signal.SIGKILL  # the system is gone already
    for each in watched:
        poll.register(each, select.POLLIN)
    said = b""
    while not said:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if told in ready:
            said = os.read(told, 65_536) or b'{"status": %d}' % signal.SIGKILL
        elif woken in ready:
            os.read(woken, 64)
            os.write(orders, b".")
        else:
            return -signal.SIGKILL  # the system has ended, and so does what it sent
    answer = json.loads(said)
    if "fault" in answer:
        raise ConfinementError(answer["fault"])
    return os.waitstatus_to_exitcode(answer["status"])


# --- the init -------------------------------------------------------------------------------------


def _be_init(
    settings: OwnConfinement, command: Sequence[str], orders: int, told: int, ids: tuple[int, int] | None
) -> NoReturn:
    """Start the pilot and wait for its end, or for that of the keeper. `ids` are the user's own; None: without a confinement."""
    answer: dict[str, object]
    try:
        os.setsid()
        if ids is not None:
            _make_view(settings, ids)
        answer = {"status": _seen_off(_started(settings, command, ids), orders)}
    except BaseException as error:  # noqa: BLE001 - a separate process: it tells the error and ends
        answer = {"fault": str(error) or repr(error)}
    finally:
        os.write(told, json.dumps(answer).encode())
        os._exit(0)


def _started(settings: OwnConfinement, command: Sequence[str], ids: tuple[int, int] | None) -> int:
    """Start the pilot in a fork and return its pid. Raise ConfinementError if it cannot be started."""
    failing, failed = os.pipe2(os.O_CLOEXEC)
    is_mapped, mapped = os.pipe2(os.O_CLOEXEC)
    is_root = ids is not None and ids[0] == 0
    pid = container.clone(NEW_USER if is_root else 0)
    if pid == 0:
        os.close(mapped)
        try:
            os.read(is_mapped, 1)
            _become(settings, command, is_confined=ids is not None, is_root=is_root)
        except BaseException as error:  # noqa: BLE001 - as above
            os.write(failed, (str(error) or repr(error)).encode())
        finally:
            os._exit(127)
    os.close(failed)
    if is_root:
        for name in ("gid_map", "uid_map"):
            Path(f"/proc/{pid}/{name}").write_text(f"0 {FIRST_ID} {IDS}")
    os.close(mapped)
    with open(failing, "rb") as file:
        fault = file.read()
    if fault:
        raise ConfinementError(fault.decode())
    if is_root:
        # What is left to do, the pilot's account can do.
        os.setgroups([])
        os.setresgid(FIRST_ID, FIRST_ID, FIRST_ID)
        os.setresuid(FIRST_ID, FIRST_ID, FIRST_ID)
    return pid


def _become(
    settings: OwnConfinement, command: Sequence[str], *, is_confined: bool, is_root: bool
) -> NoReturn:
    """Replace this process by the pilot's program. Raise OSError or ConfinementError if that fails."""
    if is_root:
        os.setgroups([])
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)
    for each in (*settings.shown, command[0]) if is_confined else ():
        if not os.access(each, os.R_OK | (os.X_OK if os.path.isdir(each) else 0)):
            raise ConfinementError(f"the account of pilots may not read {each}")
    os.chdir(settings.own)
    environment = dict(os.environ)
    if is_confined:
        # More room than in memory, and counted where the pilot's files are.
        environment["TMPDIR"] = f"{settings.own}/{SCRATCH}"
        os.makedirs(environment["TMPDIR"], mode=0o700, exist_ok=True)
    os.execvpe(command[0], list(command), environment)  # noqa: S606 - a command of the pilot submitter


def _seen_off(pilot: int, orders: int) -> int:
    """Wait until the pilot has ended, and return its wait status. If the keeper ends before, kill the pilot and end this process.

    Processes that lose their parents are the pilot's to reap, a subreaper.
    """
    poll = select.poll()
    ending = os.pidfd_open(pilot)
    poll.register(orders, select.POLLIN)
    poll.register(ending, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if ending in ready:
            return os.waitpid(pilot, 0)[1]
        if os.read(orders, 64):
            os.kill(pilot, signal.SIGTERM)
        else:
            os.kill(pilot, signal.SIGKILL)
            os._exit(0)


# --- the view -------------------------------------------------------------------------------------


def _make_view(settings: OwnConfinement, ids: tuple[int, int]) -> None:
    """Make the pilot's view of the files in this process's mount namespace. Raise OSError if the kernel refuses."""
    if ids[0]:
        container.map_ids(*ids)
    _libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    own, shared = os.path.realpath(settings.own), [os.path.realpath(each) for each in settings.shared]
    readable = [os.path.realpath(each) for each in settings.shown]
    writable = [own, *(each for each in shared if os.path.isdir(each))]
    hidden = {os.path.realpath(each) for each in (*settings.hidden, *PRIVATE)}
    if ids[0] == 0:
        hidden |= {bar for each in (*readable, *writable) if (bar := container.first_bar(each)) is not None}
    container.mount("", "/", flags=container.RECURSIVE | container.SLAVE)
    opened = {each: os.open(each, os.O_PATH | os.O_CLOEXEC) for each in (*readable, *writable)}
    container.make_read_only()
    container.mount("proc", "/proc", "proc", NOSUID | NODEV | container.NOEXEC)
    if not any(container.is_below(each, "/run") for each in opened):
        container.hide_run()
    covers = []
    for path in sorted(hidden | opened.keys()):
        if path in opened:
            _show(opened[path], path, writable=path in writable)
        elif container.cover(path, PRIVATE_OPTIONS if path in PRIVATE else container.EMPTY):
            covers.append(path)
    for path in covers:
        if path not in PRIVATE:
            container.mount("", path, flags=container.REMOUNT | container.BIND | RDONLY | NOSUID | NODEV)
    for descriptor in opened.values():
        os.close(descriptor)


def _show(descriptor: int, path: str, *, writable: bool) -> None:
    if not os.path.lexists(path):
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            os.makedirs(path, mode=0o755)
        else:
            os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
            Path(path).touch()
    container.bind(descriptor, path, writable=writable)


def words_of(arguments: Iterable[str]) -> tuple[OwnConfinement, list[str]]:
    """Return the settings and the pilot's command from the arguments of the command line. Raise msgspec.DecodeError if they are malformed."""
    settings, *command = arguments
    return msgspec.json.decode(settings, type=OwnConfinement), command


def main() -> None:
    """Run a pilot in a confinement, and end as it ends: with its exit code, or by its signal."""
    try:
        code = run(*words_of(sys.argv[1:]))
    except ConfinementError as error:
        sys.stderr.write(f"the pilot cannot be confined, and must be: {error}\n")
        sys.exit(UNUSABLE)
    if code >= 0:
        sys.exit(code)
    signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
    os.kill(os.getpid(), -code)


if __name__ == "__main__":
    main()
