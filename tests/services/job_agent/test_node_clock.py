"""The clock of a pilot's node is wrong by hours, and is set while a job runs: the job neither ends nor starts again for it."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from tests.services.job_agent.system import Agent, Grid, grid
from tests.waiting import eventually
from wms.runtime import clock

LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))

LEASE_SECONDS = 15.0
"""So long that a busy machine loses no lease, and a clock set by hours would end any."""

pytestmark = pytest.mark.skipif(
    not LIBRARIES, reason="CLOCKS OF NODES NOT TESTED: Debian's package libfaketime is not here"
)


@pytest_asyncio.fixture(loop_scope="session")
async def place(tmp_path: Path, database: str) -> AsyncIterator[Grid]:
    async with grid(tmp_path / "grid", LEASE_SECONDS, postgres=database) as made:
        yield made


def set_clock(offset: Path, hours: int) -> None:
    """Put the file that tells how wrong a clock is in its place whole: it is read at any time."""
    fresh = offset.with_name("fresh")
    fresh.write_text(f"{hours:+}h\n")
    fresh.replace(offset)


def its_clock(agent: Agent) -> datetime | None:
    """Return what the clock of the wall said when the agent wrote its last line of log."""
    said = re.findall(r'"timestamp": "([^"]+)Z"', agent.log)
    return datetime.fromisoformat(said[-1]).replace(tzinfo=UTC) if said else None


async def is_off_by(agent: Agent, hours: int) -> None:
    def is_there() -> bool:
        said = its_clock(agent)
        return said is not None and abs(said - clock.now() - timedelta(hours=hours)) < timedelta(minutes=10)

    await eventually(is_there, within=60)


@pytest.mark.parametrize(("at_first", "then"), [(5, -5), pytest.param(-5, 5, marks=pytest.mark.slow)])
async def test_a_job_runs_through_a_jump_of_its_nodes_clock_under_one_lease(
    place: Grid, tmp_path: Path, at_first: int, then: int
) -> None:
    offset = tmp_path / "offset"
    set_clock(offset, at_first)
    site = place.site()
    agent = await place.agent(
        site,
        environment={
            "LD_PRELOAD": str(LIBRARIES[0]),
            "FAKETIME_TIMESTAMP_FILE": str(offset),
            "FAKETIME_NO_CACHE": "1",
            # Nobody can set a node's clock of seconds since boot.
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        },
    )
    go_on = tmp_path / "go on"
    (job,) = await place.submit(
        site, "/bin/sh", "-c", f"until [ -e '{go_on}' ]; do sleep 0.1; done", cpu_time=60
    )
    await place.until([job], "Running", within=60)
    await is_off_by(agent, at_first)
    set_clock(offset, then)
    await is_off_by(agent, then)
    (before,) = await place.sql("select expires_at from lease where job_id = $1", job)

    async def renewed() -> bool:
        (now,) = await place.sql("select expires_at from lease where job_id = $1", job)
        # By two renewals, at a third of the lease each: the second was begun under the new clock.
        return bool(now["expires_at"] >= before["expires_at"] + timedelta(seconds=LEASE_SECONDS / 2))

    await eventually(renewed, within=60)
    go_on.touch()
    await place.until([job], "Done", within=60)
    (attempt,) = await place.attempts(job)
    assert timedelta(0) < attempt["ended_at"] - attempt["accepted_at"] < timedelta(minutes=10)
    assert 0 < attempt["wall_seconds"] < 600
