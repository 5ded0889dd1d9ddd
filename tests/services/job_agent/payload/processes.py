"""What the tests of payloads share: looking for processes without asking the agent, and a payload that hides."""

import asyncio
import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from services.job_agent.payload.delegation import Delegation
from services.job_agent.payload.isolation import PayloadIsolation, fault_here
from services.job_agent.payload.run import Payload
from tests.waiting import eventually

_tags = itertools.count(1)

CAN_ISOLATE = not asyncio.run(fault_here())
"""Whether this machine lets us make namespaces."""


async def _delegation_fault() -> str:
    async with Delegation() as cgroups:
        return cgroups.fault


DELEGATION_FAULT = asyncio.run(_delegation_fault())
"""Why payloads can have no cgroups here; empty if they can. `tests/testbed/test_kernel_limits.py` runs what needs them."""
WITH_CGROUPS = pytest.mark.skipif(bool(DELEGATION_FAULT), reason=f"NO CGROUPS HERE: {DELEGATION_FAULT}")
ISOLATIONS = [
    pytest.param(PayloadIsolation(mode="none"), id="bare"),
    pytest.param(
        PayloadIsolation(mode="required"),
        id="contained",
        marks=pytest.mark.skipif(not CAN_ISOLATE, reason="no namespaces can be made here"),
    ),
]

# Forks twice, leaves the session, sheds its environment, and has become «sleep TAG» before it says so.
DAEMON = """
import os, sys, time
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(reading)
        for n in (0, 1, 2):
            os.dup2(os.open("/dev/null", os.O_RDWR), n)
        os.execve("/bin/sleep", ["sleep", sys.argv[1]], {})
    os._exit(0)
os.close(writing)
os.read(reading, 1)
print("ready", flush=True)
"""
STAY = "time.sleep(1000)"


def new_tag() -> str:
    """Return an argument for `sleep` that no other process has."""
    return f"7{os.getpid()}.{next(_tags)}"


def alive(tag: str) -> list[int]:
    """Return the processes, zombies not counted, that have the tag among their arguments."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if tag.encode() in (process / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(process.name))
            except OSError:
                continue
    return found


async def a_line(payload: Payload) -> None:
    """Wait until a payload has printed a whole line; unbuffered Python prints one in two writes."""

    async def printed() -> bool:
        return b"\n" in (await payload.tail("stdout", 100)).data

    await eventually(printed)


async def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait until the condition holds; fail at the deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come to hold"
        await asyncio.sleep(0.01)
