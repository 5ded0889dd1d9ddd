"""PBS and LSF as the advertiser reads them, against fakes of their tools: calls, elements, and honest errors."""

import shutil
from pathlib import Path

import pytest

from services.advertiser.config import LsfQueues, PbsQueues
from services.advertiser.lsf import Lsf
from services.advertiser.pbs import Pbs
from services.advertiser.provider import Provider
from tests.services.advertiser.fake_batch_tools import install
from wms.errors import Rejected, Unavailable

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return what the fakes print, to be changed by a test."""
    for name in ("pbs", "lsf"):
        shutil.copytree(DATA / name, tmp_path / "data" / name)
    return tmp_path / "data"


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


@pytest.mark.parametrize(
    ("flavour", "expected"),
    [
        ("torque", {"long": (16, 5), "short": (32, 0)}),
        ("pbspro", {"workq": (64, 36), "gpu": (64, 0), "express": (32, 32)}),
    ],
)
async def test_pbs_queues_are_elements(
    tmp_path: Path, data: Path, flavour: str, expected: dict[str, tuple[int, int]]
) -> None:
    assert await slots(pbs(tmp_path, data, flavour)) == expected
    assert await slots(pbs(tmp_path, data, flavour, server="pbs.example.org")) == expected


async def test_lsf_queues_are_elements_each_with_its_hosts(tmp_path: Path, data: Path) -> None:
    found = await slots(lsf(tmp_path, data, max_cpu_time=3_600))
    assert found == {"normal": (28, 8), "short": (6, 1), "night": (24, 6), "admin": (0, 8)}


@pytest.mark.parametrize("kind", ["pbs", "lsf"])
async def test_a_server_that_is_away_is_unavailable_and_says_why(
    tmp_path: Path, data: Path, kind: str
) -> None:
    away = pbs(tmp_path, data, server="away") if kind == "pbs" else lsf(tmp_path, data, configuration="away")
    with pytest.raises(Unavailable, match=r"cannot connect to server away|LSF is down"):
        await away.read()


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("pbs/torque-queues.txt", "pbs"),
        ("pbs/torque-nodes.txt", "pbs"),
        ("lsf/bqueues.json", "lsf"),
        ("lsf/bhosts.json", "lsf"),
    ],
)
async def test_what_is_not_understood_is_refused_whole(
    tmp_path: Path, data: Path, file: str, kind: str
) -> None:
    (data / file).write_text("a word from somebody else\n")
    with pytest.raises(Rejected):
        await (pbs if kind == "pbs" else lsf)(tmp_path, data).read()


async def test_a_tool_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be run: No such file"):
        await Pbs(PbsQueues(site="s", directory=str(tmp_path))).read()
