"""Daemons that go into the background by themselves: started with a mark in their environment, and ended by it.

The mark is the testbed's directory, so that no process of anybody else's, nor of another testbed's, is ever taken for ours,
whatever number it has.
"""

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import psutil

MARK = "WMS_TESTBED"
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "HOME")


class TestbedError(Exception):
    """The testbed cannot be started, or a part of it failed; the message says which and why."""

    __test__ = False


def environment(root: Path, more: Mapping[str, str] = {}) -> dict[str, str]:
    """Return what daemons and tools of the testbed find in their environment."""
    base = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    path = f"{base.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin"
    return {**base, "PATH": path, MARK: str(root), **more}


def run(argv: Sequence[str], env: Mapping[str, str], *, within: float = 30.0, cwd: Path | None = None) -> str:
    """Run a program to its end, or until it has gone into the background; return what it printed."""
    try:
        done = subprocess.run(
            argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=within, check=False, cwd=cwd
        )
    except subprocess.TimeoutExpired:
        raise TestbedError(f"{argv[0]}: no end within {within:g} s") from None
    except OSError as error:
        raise TestbedError(f"{argv[0]}: {error.strerror}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        raise TestbedError(f"{' '.join(argv[:3])}: exit code {done.returncode}: {said[-2_000:]}")
    return done.stdout.decode("utf-8", "replace")


def marked(root: Path, *names: str) -> list[psutil.Process]:
    """Return the processes that bear the testbed's mark and, if any are given, one of the names."""
    return [process for process in psutil.process_iter() if _is_ours(process, root, names)]


def _is_ours(process: psutil.Process, root: Path, names: Sequence[str]) -> bool:
    try:
        if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
            return False
        return (not names or process.name() in names) and process.environ().get(MARK) == str(root)
    except (OSError, psutil.Error):
        return False


def end(processes: Iterable[psutil.Process], *, grace: float) -> None:
    """Ask processes to end, wait until they have, and kill those that have not within `grace` seconds."""
    asked = list(processes)
    for process in asked:
        _signal(process.terminate)
    for process in _still_there(asked, grace):
        _signal(process.kill)
    if stubborn := _still_there(asked, 5.0):
        raise TestbedError(f"not ended: {', '.join(map(str, stubborn))}")


def kill(processes: Iterable[psutil.Process]) -> None:
    """Kill processes and all their descendants, as the loss of their machine would, and wait until they are gone."""
    doomed: list[psutil.Process] = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            doomed += [process, *process.children(recursive=True)]
    for process in doomed:
        _signal(process.kill)
    if stubborn := _still_there(doomed, 5.0):
        raise TestbedError(f"not killed: {', '.join(map(str, stubborn))}")


def _signal(act: Callable[[], None]) -> None:
    try:
        act()
    except psutil.NoSuchProcess:
        return


def _still_there(processes: Iterable[psutil.Process], within: float) -> list[psutil.Process]:
    # Who is nobody's child here may stay a zombie where process 1 reaps none: that counts as ended.
    deadline = time.monotonic() + within
    left = [process for process in processes if _lives(process)]
    while left and time.monotonic() < deadline:
        time.sleep(0.02)
        left = [process for process in left if _lives(process)]
    return left


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_until(what: str, ready: Callable[[], bool], within: float) -> None:
    """Ask until something is so. Raises TestbedError after `within` seconds."""
    deadline = time.monotonic() + within
    while not ready():
        if time.monotonic() > deadline:
            raise TestbedError(f"{what}: not within {within:g} s")
        time.sleep(0.1)


def free_ports(count: int) -> list[int]:
    """Return TCP ports of the loopback interface that nobody has now, all different."""
    held = [socket.socket() for _ in range(count)]
    try:
        for each in held:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()
