"""Network namespaces of our own: what listens there is reached by nobody outside it."""

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
    """One way to make a network namespace, and to enter it."""

    make: tuple[str, ...]
    enter: tuple[str, ...]

    def doorkeeper(self, port: int, paths: Sequence[Path]) -> list[str]:
        """Return the command line of a doorkeeper in a new namespace, with the sockets where it listens."""
        # By its file: the package takes longer to import than it does to start.
        program = [sys.executable, "-I", "-S", str(_DOORKEEPER), f"--port={port}", *map(str, paths)]
        return [*self.make, "--", *program]

    def beside(self, pid: int, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs `argv` in the namespace of a process."""
        return ["nsenter", f"--target={pid}", *self.enter, "--", *argv]


# As another user's namespace first, which no right is needed for; root has the right where those are forbidden.
_WAYS = (
    NetworkIsolation(
        ("unshare", "--user", "--map-root-user", "--net"), ("--user", "--preserve-credentials", "--net")
    ),
    NetworkIsolation(("unshare", "--net"), ("--net",)),
)


@functools.cache
def isolation() -> NetworkIsolation | None:
    """Return the first way that works here, None where the machine allows none."""
    if sys.platform != "linux" or shutil.which("nsenter") is None:
        return None
    ways = _WAYS if os.geteuid() == 0 else _WAYS[:1]
    return next((each for each in ways if _works(each)), None)


def _works(way: NetworkIsolation) -> bool:
    if shutil.which(way.make[0]) is None:
        return False
    # What a doorkeeper does first: the namespace alone is of no use.
    inside = [*way.make, "--", sys.executable, "-I", "-S", str(_DOORKEEPER), "--try"]
    return subprocess.run(inside, capture_output=True, check=False, timeout=20).returncode == 0
