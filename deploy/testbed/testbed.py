"""The whole testbed below one directory: who is there, how it is started, how it is ended."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deploy.testbed import packages
from deploy.testbed.arc import INFORMATION_SECONDS, ArcElement
from deploy.testbed.closed_network import ClosedNetwork
from deploy.testbed.daemons import end, marked
from deploy.testbed.slurm import Shape, SlurmCluster

SITES = "sites.json"
"""What of the testbed runs and how it is reached, for whoever uses it."""

PROGRAMS = {**packages.SLURM, **packages.TORQUE, **packages.ARC}
"""What must be installed for all of it."""

CLUSTERS = {"alpha": Shape(nodes=3, cores=4), "beta": Shape(nodes=2, cores=8, remembered=5, patience=20)}
"""The second forgets soon what has ended, and soon gives up a node: what becomes of a job is then told by other means."""

IN_ORDER = (("arched",), ("slurmctld",), ("slurmd", "slurmstepd"), ("munged",))
"""A controller that loses its nodes first waits for them; munge must be there to the last."""


class Testbed:
    """Slurm clusters of these shapes, two by default, and an ARC element over the first of them, below `root`.

    If directories are `hidden`, all nodes stand in a closed network, where these are empty.
    """

    __test__ = False

    def __init__(
        self,
        root: Path,
        shapes: Mapping[str, Shape] = CLUSTERS,
        information_seconds: int = INFORMATION_SECONDS,
        hidden: Sequence[Path] = (),
    ) -> None:
        self.root = root.absolute()
        self.network = ClosedNetwork(self.root, hidden) if hidden else None
        self.clusters = {
            name: SlurmCluster(self.root, name, shape, self.network) for name, shape in shapes.items()
        }
        below = next(iter(self.clusters.values()))
        self.arc = ArcElement(self.root, below.configuration, ("main", "short"), information_seconds)

    @classmethod
    def at(cls, root: Path) -> "Testbed":
        """Return the one that runs below `root`, whoever started it: parts of it may be killed and started again."""
        testbed = cls(root)
        testbed.arc.url = json.loads((root / SITES).read_text())["arc"]["url"]
        return testbed

    def up(self) -> None:
        """Start everything, afresh if something of it runs still. Raises TestbedError, and leaves nothing running."""
        self.down()
        self.root.mkdir(parents=True, exist_ok=True)
        try:
            if self.network is not None:
                self.network.open()
            for cluster in self.clusters.values():
                cluster.start()
            self.arc.start()
        except BaseException:
            self.down()
            raise
        (self.root / SITES).write_text(json.dumps(self.sites(), indent=2) + "\n")

    def down(self) -> None:
        """End everything that runs; what was written stays."""
        (self.root / SITES).unlink(missing_ok=True)
        for cluster in self.clusters.values():
            if marked(self.root, "slurmctld"):
                cluster.empty()
        for names in IN_ORDER:
            end(marked(self.root, *names), grace=10.0)
        end(marked(self.root), grace=2.0)
        self.arc.forget()
        if self.network is not None:
            self.network.close()

    def sites(self) -> dict[str, Any]:
        """Return how each site is reached."""
        clusters = {
            name: {
                "middleware": "slurm",
                "configuration": str(cluster.configuration),
                "nodes": cluster.nodes,
                "cores_per_node": cluster.shape.cores,
                "memory_mb_per_node": cluster.shape.memory_mb,
                "partitions": ["main", "short"],
            }
            for name, cluster in self.clusters.items()
        }
        arc = {
            "middleware": "arc",
            "url": self.arc.url,
            "authority": str(self.arc.authority),
            "proxy": str(self.arc.proxy),
            "token": str(self.arc.token),
            "queues": self.arc.queues,
        }
        return {**clusters, "arc": arc}
