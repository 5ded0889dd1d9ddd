"""Network namespaces of Linux: a program that listens in one can be reached only from inside it."""

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
    """How network namespaces are made and entered on this machine, as beginnings of command lines."""

    make: tuple[str, ...]
    enter: tuple[str, ...]

    def doorkeeper(self, port: int, paths: Sequence[Path]) -> list[str]:
        """Return the command line that makes a namespace and runs the doorkeeper in it.

        It listens on the Unix sockets `paths` and connects to `port` in the namespace.
        """
        # By its file, since importing the package takes longer than its start.
        program = [sys.executable, "-I", "-S", str(_DOORKEEPER), f"--port={port}", *map(str, paths)]
        return [*self.make, "--", *program]

    def beside(self, pid: int, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs `argv` in the network namespace of the process `pid`."""
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
    """Return how network namespaces are made on this machine; None if it does not allow any."""
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
