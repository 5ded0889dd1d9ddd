"""A service dies between commit, send and offset, at each named point; what was under way takes effect once.

The whole system runs: the armed service is killed by itself in the midst of real messages and started again unarmed.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.chaos.run import quick_system
from tests.waiting import eventually
from wms.audit import audit
from wms.broker.placement import Dispatch
from wms.bus.unix_socket import servers
from wms.client import Client, JobDescription, Submission
from wms.db import ad, placement
from wms.db.database import Database
from wms.db.placement import NewPlacement
from wms.embedded.system import System
from wms.faultpoint import AGREEMENT_POINTS, BROKER_POINTS, BUS_POINTS, PLACING_POINTS
from wms.ids import JobId
from wms.jobdesc.preferences import JobPreferences

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]

TRUE = JobDescription(executable="/bin/true", cpu_time=60, max_attempts=20)
BROKERED = JobDescription(executable="/bin/true", cpu_time=60, max_attempts=20, preferences=JobPreferences())


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    async with quick_system(tmp_path_factory.mktemp("faultpoints"), direct_trusted=["*/*/*"]) as each:
        yield each


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def client(system: System) -> AsyncIterator[Client]:
    async with Client.connect(system.layout.root, timeout=60) as each:
        yield each


def starts(system: System, name: str) -> int:
    return system.state().children[name].starts


async def restart_with(system: System, name: str, variables: dict[str, str]) -> None:
    """Kill a service and have its next life, and only that, begin with these variables."""
    server = system.supervisor._servers[name]
    before = starts(system, name)
    server.environment |= variables
    pid = system.supervisor.pid_of(name)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await eventually(lambda: starts(system, name) > before, within=30)
    for variable in variables:
        del server.environment[variable]


async def ended(client: Client, submission: Submission) -> dict[str, int]:
    return await client.wait(submission.selector(), timeout=240)


async def clean(system: System) -> None:
    assert system.facts is not None
    report = await audit(system.facts.postgres_url)
    assert report.ok, report.text(brief=True)


@pytest.mark.parametrize("service", ["job_manager", "matcher"])
@pytest.mark.parametrize("point", sorted(BUS_POINTS))
async def test_a_death_at_a_named_point_loses_nothing_and_does_nothing_twice(
    system: System, client: Client, service: str, point: str
) -> None:
    # Ten jobs may be matched in one transaction, and told of by one row of the outbox.
    time = 1 if point == "relay.after_delete" else 2
    await restart_with(system, service, {"WMS_FAULTPOINT": f"{point}:{time}"})
    armed = starts(system, service)
    submission = await client.submit([TRUE] * 10, id=f"{service} {point}")
    assert submission.count == 10
    assert await ended(client, submission) == {"Done": 10}
    again = await client.submit([TRUE] * 10, id=f"{service} {point}")
    assert (again.ids, again.repeated) == (submission.ids, True)
    await eventually(lambda: starts(system, service) > armed, within=30)
    assert system.state().children[service].last_exit == -signal.SIGKILL
    await clean(system)


@pytest.mark.parametrize("point", sorted(PLACING_POINTS - {"placing.after_failure"}))
async def test_a_pilot_submitter_that_dies_at_a_placement_leaves_it_to_the_next(
    system: System, client: Client, point: str
) -> None:
    """The job runs once: by the pilot that was stored or sent, or at the next placement."""
    async with killed_at(system, "pilot_submitter", point):
        dispatch: Dispatch = "direct" if "direct" in point else "pilot"
        submission = await client.submit(replace(TRUE, dispatch=dispatch), id=f"placed {point}")
        # A pilot that was stored and not sent is given up after a minute.
        assert await client.wait(submission.selector(), timeout=120) == {"Done": 1}
    await clean(system)


async def test_a_pilot_submitter_that_dies_at_a_failure_leaves_the_job_to_the_broker(
    system: System, client: Client
) -> None:
    async with killed_at(system, "pilot_submitter", "placing.after_failure"):
        # The first placement is made by hand, too late to start: the broker must not be before us.
        with stopped(system, "resource_broker"):
            submission = await client.submit(replace(TRUE, dispatch="pilot"), id="placed too late")
            await eventually(lambda: placed_too_late(system, submission))
        assert await ended(client, submission) == {"Done": 1}
    await clean(system)


@contextlib.asynccontextmanager
async def killed_at(system: System, service: str, point: str) -> AsyncIterator[None]:
    """Arm a point of a service for the time of the block, and see that it killed the service."""
    await restart_with(system, service, {"WMS_FAULTPOINT": point})
    armed = starts(system, service)
    yield
    await eventually(lambda: starts(system, service) > armed, within=30)
    assert system.state().children[service].last_exit == -signal.SIGKILL


@contextlib.contextmanager
def stopped(system: System, service: str) -> Iterator[None]:
    pid = system.supervisor.pid_of(service)
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def placed_too_late(system: System, submission: Submission) -> bool:
    """Place a job at the system's element if it is Checking, with a latest start that has passed; return whether it was placed."""
    assert system.facts is not None
    (job_id,) = submission.job_ids()
    db = await Database.connect(system.facts.postgres_url, size=2, ready=1, application="test")
    try:
        async with db.transaction() as tx:
            (element, *_) = await ad.fresh(tx)
            late = await tx.now() - timedelta(seconds=1)
            new = NewPlacement(job_id=JobId(job_id), site=element.site, ce=element.ce, latest_start=late)
            return bool(await placement.order(tx, [new], "test"))
    finally:
        await db.close()


@pytest.mark.parametrize("point", sorted(BROKER_POINTS))
async def test_a_broker_that_dies_amid_a_step_places_each_job_once(
    system: System, client: Client, point: str
) -> None:
    variables = {"WMS_FAULTPOINT": point, "WMS_BROKERING__CLAIM_SECONDS": "2"}
    await restart_with(system, "resource_broker", variables)
    armed = starts(system, "resource_broker")
    submission = await client.submit([BROKERED] * 3, id=f"brokered {point}")
    assert await ended(client, submission) == {"Done": 3}
    await eventually(lambda: starts(system, "resource_broker") > armed, within=30)
    first, last = submission.ids[0]
    for job_id in range(first, last + 1):
        assert len((await client.ranking(job_id)).placements) == 1
    await clean(system)


@pytest.mark.parametrize("point", sorted(AGREEMENT_POINTS - {"agreement.after_release"}))
async def test_an_agreement_service_that_dies_amid_a_decision_makes_each_agreement_once(
    system: System, client: Client, point: str
) -> None:
    """What is released outside the database has its test on a real batch system."""
    variables = {"WMS_FAULTPOINT": point, "WMS_AGREEMENT__TURN_SECONDS": "2"}
    await restart_with(system, "agreement", variables)
    armed = starts(system, "agreement")
    submission = await client.submit([BROKERED] * 3, id=f"reserved {point}")
    assert await ended(client, submission) == {"Done": 3}
    await eventually(lambda: starts(system, "agreement") > armed, within=30)
    assert system.state().children["agreement"].last_exit == -signal.SIGKILL
    await clean(system)


async def test_a_service_that_was_stopped_for_long_does_nothing_twice_when_it_goes_on(
    system: System, client: Client
) -> None:
    """What a long pause of the machine does: the lease of its partitions is over, and it does not know."""
    pid = system.supervisor.pid_of("job_manager")
    assert pid is not None
    first = asyncio.create_task(client.submit([TRUE] * 10, id="before the pause"))
    os.kill(pid, signal.SIGSTOP)
    try:
        assert system.facts is not None
        connection = await asyncpg.connect(system.facts.postgres_url)
        # So long that all leases are over by the time it goes on.
        await eventually(lambda: _silent(connection, pid), within=30)
        await connection.execute("update lease set expires_at = now() - interval '1 s'")
        await connection.close()
    finally:
        os.kill(pid, signal.SIGCONT)
    assert await ended(client, await first) == {"Done": 10}
    await clean(system)


async def _silent(connection: asyncpg.Connection, pid: int) -> bool:
    return bool(
        await connection.fetchval(
            "select heartbeat_at < now() - interval '6 s' from service_instance where pid = $1", pid
        )
    )


async def test_two_instances_share_the_work_and_the_death_of_one_leaves_it_to_the_other(
    system: System, client: Client, tmp_path: Path
) -> None:
    import sys

    from wms.embedded.server import Program

    config = system.layout.service("job_manager") / "config.toml"
    argv = [sys.executable, "-m", "services.job_manager", "--config", str(config)]
    async with Program(tmp_path, name="job_manager_2", argv=argv) as second:
        assert system.facts is not None
        connection = await asyncpg.connect(system.facts.postgres_url)

        async def sharing() -> bool:
            return bool(
                await connection.fetchval(
                    "select true from service_instance where pid = $1 and heartbeat_at > now() - interval '2 s'",
                    second.pid,
                )
            )

        await eventually(sharing, within=30)
        many = [await client.submit([TRUE] * 20, id=f"shared {n}") for n in range(3)]
        # Stopped, not dead: it wakes later and finds its partitions moved on.
        assert second.pid is not None
        os.kill(second.pid, signal.SIGSTOP)
        try:
            many += [await client.submit([TRUE] * 20, id=f"alone {n}") for n in range(3)]
            for each in many:
                assert await ended(client, each) == {"Done": 20}
        finally:
            os.kill(second.pid, signal.SIGCONT)
        await connection.close()
        last = await client.submit([TRUE] * 20, id="together again")
        assert await ended(client, last) == {"Done": 20}
    await clean(system)


# --- poison ---------------------------------------------------------------------------------------

POISONED = """create function poison() returns trigger language plpgsql as $$
    begin
        if new.name = 'poison' then raise exception 'a fault of ours'; end if;
        return new;
    end $$;
    create trigger poison before insert on job for each row execute function poison()"""


async def test_a_message_that_cannot_be_handled_is_put_aside_and_replayed(
    system: System, client: Client
) -> None:
    assert system.facts is not None
    connection = await asyncpg.connect(system.facts.postgres_url)
    await connection.execute(POISONED)
    poison = asyncio.create_task(client.submit(replace(TRUE, name="poison"), id="poison"))
    good = await asyncio.gather(*(client.submit(TRUE, id=f"beside poison {n}") for n in range(10)))
    for each in good:
        assert await ended(client, each) == {"Done": 1}
    letters = "select dead_letter_id, error, principal, replayed_at from dead_letter order by dead_letter_id"
    (letter, *_) = await eventually(lambda: connection.fetch(letters))
    assert "a fault of ours" in letter["error"]
    assert letter["principal"] is not None
    # Its tool gives up: from now on only the replay can bring the job.
    poison.cancel()
    await asyncio.wait([poison])
    assert await connection.fetchval("select count(*) from job where name = 'poison'") == 0
    await connection.execute("drop trigger poison on job; drop function poison")

    async def replayed() -> bool:
        # The tool sent it again while it had no answer, so that there may be several of the same, the last on its way.
        await connection.execute(
            "update dead_letter set replay_requested_at = now() where replay_requested_at is null and replayed_at is null"
        )
        return all(row["replayed_at"] for row in await connection.fetch(letters))

    await eventually(replayed, within=30)
    again = await client.submit(replace(TRUE, name="poison"), id="poison")
    # It is answered as one that came before, or by the replay's own answer, if that is still on its way.
    assert await ended(client, again) == {"Done": 1}
    assert await connection.fetchval("select count(*) from job where name = 'poison'") == 1
    await connection.close()
    await clean(system)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff\xfe",
        b'{"type":"submit"',
        b'{"type":"nonsense"}',
        b"[" * 100_000,
        b"x" * 960_000,
        b'{"a":1e999}',
    ],
    ids=["empty", "not UTF-8", "truncated", "unknown", "deep", "huge", "infinite"],
)
async def test_garbage_is_put_aside_and_the_partition_goes_on(
    system: System, client: Client, payload: bytes
) -> None:
    from aiokafka import AIOKafkaProducer

    from wms.messages.commands import TOPIC

    assert system.broker is not None
    assert system.facts is not None
    producer = AIOKafkaProducer(
        bootstrap_servers=servers(system.broker.bootstrap), max_request_size=1_048_000
    )
    await producer.start()
    connection = await asyncpg.connect(system.facts.postgres_url)
    before = await connection.fetchval("select count(*) from dead_letter")
    for partition in range(4):
        await producer.send_and_wait(TOPIC, payload, partition=partition)
    await producer.stop()

    async def buried() -> bool:
        return bool(await connection.fetchval("select count(*) from dead_letter") == before + 4)

    await eventually(buried)
    assert await ended(client, await client.submit(TRUE)) == {"Done": 1}
    await connection.close()
    await clean(system)
