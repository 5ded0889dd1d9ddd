"""A closed network for the nodes of a cluster: a network namespace whose only neighbour is this machine.

It has no route to anywhere else. From inside nobody reaches what listens on this machine's loopback interface or at another address of it
than `host`. Directories may be hidden as well, as if the nodes shared no file system with whoever owns them.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from deploy.testbed.daemons import TestbedError, environment, run

NAMESPACES = Path("/run/netns")
_HIDE = (
    'while [ "$1" != -- ]; do mount -t tmpfs -o size=64k none "$1" || exit 71; shift; done; shift; exec "$@"'
)


class ClosedNetwork:
    """The network of the testbed below `root`. `hidden` are directories, which must exist, that are empty inside."""

    def __init__(self, root: Path, hidden: Sequence[Path] = ()) -> None:
        # By the root alone, so that whoever knows it can remove what a killed testbed has left.
        digest = hashlib.sha256(str(root.absolute()).encode()).hexdigest()
        number = int(digest, 16) % 16_384
        prefix, first = f"10.213.{number // 64}", number % 64 * 4
        self.name = f"wms-{digest[:8]}"
        self.host = f"{prefix}.{first + 1}"
        """The address of this machine, as the nodes reach it."""
        self.nodes = f"{prefix}.{first + 2}"
        """The address of the nodes."""
        self._hidden = tuple(map(str, hidden))
        self._outer, self._inner = f"wo{digest[:8]}", f"wi{digest[:8]}"
        self._root = root

    def open(self) -> None:
        """Make the network. Raise TestbedError, and leave nothing, if this machine does not allow it."""
        self.close()
        try:
            self._ip("netns", "add", self.name)
            self._ip("link", "add", self._outer, "type", "veth", "peer", self._inner, "netns", self.name)
            self._ip("address", "add", f"{self.host}/30", "dev", self._outer)
            self._ip("link", "set", self._outer, "up")
            self._ip("-n", self.name, "address", "add", f"{self.nodes}/30", "dev", self._inner)
            for device in (self._inner, "lo"):
                self._ip("-n", self.name, "link", "set", device, "up")
        except TestbedError:
            self.close()
            raise

    def close(self) -> None:
        """Remove the network, if it is there. It goes on without a name as long as a process is in it."""
        # In this order: a namespace takes its interfaces along, but later.
        if Path("/sys/class/net", self._outer).exists():
            self._ip("link", "delete", self._outer)
        if (NAMESPACES / self.name).exists():
            self._ip("netns", "delete", self.name)

    def inside(self, *argv: str) -> list[str]:
        """Return the command line that runs `argv` in the network, where the hidden directories are empty."""
        # Not by `ip netns exec`, which takes the control groups away that Slurm looks for.
        enter = ["nsenter", f"--net={NAMESPACES / self.name}", "unshare", "--mount"]
        return [*enter, "sh", "-c", _HIDE, "sh", *self._hidden, "--", *argv]

    @property
    def inode(self) -> int:
        """The number of the namespace, as `/proc/PID/ns/net` tells it of the processes in it."""
        return (NAMESPACES / self.name).stat().st_ino

    def _ip(self, *words: str) -> None:
        run(["ip", *words], environment(self._root))


def lack(root: Path) -> str:
    """Return why no closed network can be made on this machine; empty if one can. `root` is a directory of the caller's own."""
    if os.geteuid() != 0:
        return "the rights of root, which a network of its own needs"
    network = ClosedNetwork(root)
    try:
        network.open()
        run(network.inside("true"), environment(root))
    except TestbedError as error:
        return f"network namespaces: {error}"
    finally:
        network.close()
    return ""
