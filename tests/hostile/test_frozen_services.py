"""An agreement service that is frozen: jobs in hand wait for the time that a site has to decide, and jobs after that for nothing."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest_asyncio

from services.resource_broker.config import BrokeringSettings
from tests.hostile.innocent import RUN_SECONDS, SLOWER_AT_MOST, Innocent
from tests.hostile.target import Target
from tests.waiting import eventually
from wms.client import JobDescription
from wms.db.instance import DEAD_AFTER_SECONDS
from wms.jobdesc.preferences import JobPreferences

DECISION_SECONDS = BrokeringSettings().decision_seconds
SILENT = "select now() - heartbeat_at > make_interval(secs => $1) from service_instance where service = 'agreement'"
RESERVED = "select count(agreement_id) from placement where created_at >= $1"


@pytest_asyncio.fixture(loop_scope="session")
async def reserving(innocent: Innocent, target: Target) -> Innocent:
    """Return a user whose jobs run in reservations, with what they usually take."""
    wanted = JobDescription(
        executable="/bin/sleep", arguments=(str(RUN_SECONDS),), cpu_time=60, preferences=JobPreferences()
    )
    user = Innocent(innocent.client, target, wanted)
    await user.learn_usual()
    return user


@pytest_asyncio.fixture(loop_scope="session")
async def database(target: Target) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(target.database)
    yield connection
    await connection.close()


@contextlib.contextmanager
def frozen(target: Target, name: str) -> Iterator[None]:
    """Stop the process of a service, and let it go on after the body."""
    pid = target.system.supervisor.pid_of(name)
    assert pid is not None
    target.frozen.add(name)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        # The system kills and replaces a service that is frozen for longer.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


async def test_a_frozen_agreement_service_costs_the_jobs_in_hand_its_time_and_later_ones_none(
    target: Target, reserving: Innocent, database: asyncpg.Connection
) -> None:
    usual = reserving.usual_seconds
    async with asyncio.TaskGroup() as group:
        with frozen(target, "agreement"):
            began = await database.fetchval("select now()")
            in_hand = group.create_task(reserving.run_one())
            await eventually(lambda: database.fetchval(SILENT, DEAD_AFTER_SECONDS + 1.0), 30)
            later = [await reserving.run_one()]
            assert await database.fetchval(RESERVED, began) == 0
            later.append(await reserving.run_one())
    first = in_hand.result()
    print(f"usual {usual:.2f} s; as it froze {first:.2f} s; after that {later} s")
    assert first <= DECISION_SECONDS + SLOWER_AT_MOST * usual
    assert max(later) <= SLOWER_AT_MOST * usual

    async def reserved_again() -> bool:
        await reserving.run_one()
        return bool(await database.fetchval(RESERVED, began))

    await eventually(reserved_again, 60)
