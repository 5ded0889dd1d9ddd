"""Providers of the testbed's clusters and its ARC element."""

from services.advertiser.arc import Arc
from services.advertiser.config import SlurmQueues
from services.advertiser.provider import SeenElement
from services.advertiser.slurm import Slurm
from tests.middleware import Sites


def slurm(testbed: Sites, name: str = "alpha", **said: object) -> Slurm:
    """Return the provider of a cluster."""
    return Slurm(SlurmQueues(site=name, configuration=str(testbed.slurm(name)), **said))  # type: ignore[arg-type] # as said


async def queue(provider: Slurm | Arc, name: str = "main") -> SeenElement:
    """Return what is seen of a queue."""
    return next(each for each in await provider.read() if each.offer.ce == name)
