"""Network namespaces: a program that listens in one can be reached only from inside it."""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

_DOORKEEPER = Path(__file__).with_name("doorkeeper.py")


class NetworkIsolation(msgspec.Struct, frozen=True):
    """A method to create a network namespace and to enter it."""

    make: tuple[str, ...]
    enter: tuple[str, ...]

    def doorkeeper(self, port: int, paths: Sequence[Path]) -> list[str]:
        """Return the command line of a doorkeeper in a new namespace, which listens on these paths."""
        # By its file, since importing the package takes longer than its start.
        program = [sys.executable, "-I", "-S", str(_DOORKEEPER), f"--port={port}", *map(str, paths)]
        return [*self.make, "--", *program]

    def beside(self, pid: int, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs `argv` in the network namespace of a process."""
        return ["nsenter", f"--target={pid}", *self.enter, "--", *argv]


# A user namespace first, since it needs no privilege; where it is forbidden, root has the privilege to do without.
_WAYS = (
    NetworkIsolation(
        ("unshare", "--user", "--map-root-user", "--net"), ("--user", "--preserve-credentials", "--net")
    ),
    NetworkIsolation(("unshare", "--net"), ("--net",)),
)


@functools.cache
def isolation() -> NetworkIsolation | None:
    """Return the first method that works on this machine; None if it allows none."""
    if sys.platform != "linux" or shutil.which("nsenter") is None:
        return None
    ways = _WAYS if os.geteuid() == 0 else _WAYS[:1]
    return next((each for each in ways if _works(each)), None)


def _works(way: NetworkIsolation) -> bool:
    if shutil.which(way.make[0]) is None:
        return False
    # Try the first step of a doorkeeper, too, since a namespace without loopback is of no use.
    inside = [*way.make, "--", sys.executable, "-I", "-S", str(_DOORKEEPER), "--try"]
    return subprocess.run(inside, capture_output=True, check=False, timeout=20).returncode == 0
