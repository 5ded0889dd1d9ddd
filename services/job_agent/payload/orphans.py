"""Ends what a dead shepherd left of its payloads: processes, containers and cgroups."""

import contextlib
import os
import signal
import subprocess
import time

from services.job_agent.payload import cgroup, shepherd

END_SECONDS = 6.0
"""Seconds for which a shepherd may end its payloads and itself, once its socket to the agent is closed."""
SWEEP_SECONDS = 5.0
SWEEP_PAUSE = 0.02


def end(program: "subprocess.Popen[bytes]", marks: set[int], containers: set[int], cgroups: set[str]) -> int:
    """Wait until the shepherd has ended, and kill the processes and containers that it left. Blocking.

    `marks`, `containers` (pids) and `cgroups` (directories) identify them. Return the number of processes and containers
    that did not end within SWEEP_SECONDS each.
    """
    _ended(program)
    left = _swept(marks) + _emptied(containers)
    return left + sum(not cgroup.end(path, SWEEP_SECONDS) for path in cgroups)


def _ended(program: "subprocess.Popen[bytes]") -> None:
    """Wait until the shepherd, whose socket is closed, has ended. After END_SECONDS kill it. Blocking."""
    try:
        program.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()


def _swept(marks: set[int]) -> int:
    """Kill every process that has one of these marks. Return how many did not end within SWEEP_SECONDS. Blocking."""
    deadline = time.monotonic() + SWEEP_SECONDS
    while found := shepherd.marked(marks) if marks else []:
        for pid, _ in found:
            shepherd.send_signal(pid, signal.SIGKILL)
            # The agent is a subreaper, and so the parent of processes that lost theirs.
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > deadline:
            return len(found)
        time.sleep(SWEEP_PAUSE)
    return 0


def _emptied(containers: set[int]) -> int:
    """Kill the containers with these pids, which are the agent's children now. Return how many did not end within SWEEP_SECONDS. Blocking."""
    deadline = time.monotonic() + SWEEP_SECONDS
    left = set(containers)
    while left and time.monotonic() < deadline:
        for pid in list(left):
            shepherd.send_signal(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG) == (0, 0):
                    continue
            left.discard(pid)
        time.sleep(SWEEP_PAUSE if left else 0)
    return len(left)
