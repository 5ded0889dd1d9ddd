"""Linux network namespaces: a server that listens in one can be reached only by processes inside it."""

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
    """A method to create and enter network namespaces: the beginnings of the command lines that do it (`make`, `enter`)."""

    make: tuple[str, ...]
    enter: tuple[str, ...]

    def doorkeeper(self, port: int, paths: Sequence[Path]) -> list[str]:
        """Return the command line that creates a network namespace and runs the doorkeeper in it.

        The doorkeeper (`doorkeeper.py`) listens on the Unix sockets `paths`, and connects clients to the TCP port `port` in the namespace.
        """
        # By its file, since importing the package takes longer than its start.
        program = [sys.executable, "-I", "-S", str(_DOORKEEPER), f"--port={port}", *map(str, paths)]
        return [*self.make, "--", *program]

    def beside(self, pid: int, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs the program `argv` in the network namespace of the process `pid`."""
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
    """Return the first method to create network namespaces that works on this machine; None if none does. The result is cached."""
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
