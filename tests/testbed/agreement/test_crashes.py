"""No crash of the agreement service leaves a reservation in Slurm past its time; `python -m tests.testbed.agreement` does many."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.middleware import Sites
from tests.services.world import World, world
from tests.testbed.agreement.cluster import delete_all, listed
from tests.testbed.agreement.crashes import Crashes

pytestmark = [
    pytest.mark.testbed,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(400),
]


@pytest_asyncio.fixture(loop_scope="session")
async def the_world(database: str) -> AsyncIterator[World]:
    async with world(database) as each:
        yield each


@pytest.fixture(autouse=True)
def _nothing_is_left(testbed: Sites) -> Iterator[None]:
    delete_all(testbed)
    yield
    delete_all(testbed)


async def test_nothing_outlives_its_time(
    the_world: World, kafka: str, testbed: Sites, tmp_path: Path
) -> None:
    run = Crashes(
        the_world, kafka, testbed.slurm("beta"), tmp_path, lambda: set(listed(testbed)), seed=20_261_125
    )
    report = await run.run(12)
    assert report.made, report.text()
    assert not report.left, report.text()
    assert not set(report.states) & {"Requested", "Temporary", "Confirmed"}, report.text()
