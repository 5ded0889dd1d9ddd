"""Providers of PBS and LSF over fakes of their tools."""

from pathlib import Path

from services.advertiser.config import LsfQueues, PbsQueues
from services.advertiser.lsf import Lsf
from services.advertiser.pbs import Pbs
from services.advertiser.provider import Provider
from tests.services.advertiser.fake_batch_tools import install

DATA = Path(__file__).parents[2] / "data"


def pbs(place: Path, data: Path, flavour: str = "torque", **more: str) -> Pbs:
    install(place / "tools", data, flavour)
    return Pbs(PbsQueues(site="glasgow", directory=str(place / "tools"), **more))  # type: ignore[arg-type]


def lsf(place: Path, data: Path, **more: object) -> Lsf:
    install(place / "tools", data)
    return Lsf(LsfQueues(site="glasgow", directory=str(place / "tools"), **more))  # type: ignore[arg-type]


async def slots(provider: Provider) -> dict[str, tuple[int, object]]:
    """Return the slots of each element, and those that are free."""
    return {
        each.offer.ce: (each.offer.slots, each.glue.free_job_slots)
        for each in await provider.read()
        if each.offer.dispatcher in ("pbs", "lsf")
    }
