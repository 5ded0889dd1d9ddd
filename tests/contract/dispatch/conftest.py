"""Each middleware in turn, and a dispatcher of processes."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.contract.dispatch.grounds import (
    ArcGround,
    FakeHTCondorGround,
    FakeLsfGround,
    FakePbsGround,
    Ground,
    LocalGround,
    PbsOverSlurmGround,
    SlurmGround,
)
from tests.contract.dispatch.processes import WAITS, ended, running
from tests.middleware import Sites
from tests.waiting import eventually
from wms.dispatch.local import LocalDispatcher

REAL = pytest.mark.testbed


@pytest.fixture(
    params=[
        pytest.param("local"),
        pytest.param("htcondor", id="fake-htcondor"),
        pytest.param("pbs", id="fake-pbs"),
        pytest.param("lsf", id="fake-lsf"),
        pytest.param("pbs-over-slurm", marks=REAL),
        pytest.param("alpha", id="slurm", marks=REAL),
        pytest.param("beta", id="forgetful-slurm", marks=REAL),
        pytest.param("arc", marks=[REAL, pytest.mark.timeout(300)]),
    ]
)
async def ground(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Ground]:
    """Yield one middleware; of the two clusters, the second forgets five seconds after it what has ended."""
    made = _ground(request, tmp_path)
    yield made
    await made.clear()


def _ground(request: pytest.FixtureRequest, place: Path) -> Ground:
    here: dict[str, Callable[[Path], Ground]] = {
        "local": LocalGround,
        "htcondor": FakeHTCondorGround,
        "pbs": FakePbsGround,
        "lsf": FakeLsfGround,
    }
    if made := here.get(request.param):
        return made(place)
    sites: Sites = request.getfixturevalue("testbed")
    if request.param == "arc":
        return ArcGround(sites)
    if request.param == "pbs-over-slurm":
        return PbsOverSlurmGround(place, sites)
    return SlurmGround(place, sites, request.param)


@pytest.fixture
async def slurm(tmp_path: Path, testbed: Sites) -> AsyncIterator[SlurmGround]:
    made = SlurmGround(tmp_path, testbed, "alpha")
    yield made
    await made.clear()


@pytest.fixture
async def dispatcher(tmp_path: Path) -> AsyncIterator[LocalDispatcher]:
    made = running(WAITS, tmp_path)
    yield made
    for pilot_id in await made.alive():
        await made.cancel([pilot_id])
    await eventually(lambda: ended(made))
