"""Jobs that a whole system places: ranked, reserved for, run by pilots of their own or as batch jobs, beside jobs of the ordinary pull."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.conftest import _fresh_database as fresh_database
from tests.waiting import eventually
from wms.audit import audit
from wms.broker.placement import Dispatch
from wms.client import Client, JobDescription, Submission
from wms.db import ad, placement
from wms.db.database import Database
from wms.db.placement import NewPlacement, Placement
from wms.embedded.system import System
from wms.errors import Rejected
from wms.files import Table
from wms.ids import JobId
from wms.jobdesc.preferences import JobPreferences

HELLO = JobDescription(executable="/bin/sh", arguments=("-c", "echo hello; echo kept > out"), cpu_time=60)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: str, template: str
) -> AsyncIterator[System]:
    pilots: Table = {"direct_trusted": ["local/user/*"]}
    async for database in fresh_database(postgres_server, template):
        own = System(
            tmp_path_factory.mktemp("placed") / "own",
            postgres=database,
            slots=2,
            log_level="warning",
            pilots=pilots,
        )
        async with own as running:
            yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def client(system: System) -> AsyncIterator[Client]:
    async with Client.connect(system.layout.root, timeout=60) as each:
        yield each


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def db(system: System) -> AsyncIterator[Database]:
    assert system.facts is not None
    each = await Database.connect(system.facts.postgres_url, size=2, ready=1, application="test")
    yield each
    await each.close()


async def placed(db: Database, submission: Submission, dispatch: Dispatch = "pilot") -> bool:
    """Place the jobs of a submission that are Checking at the system's element; return whether all are placed, by whomever."""
    async with db.transaction() as tx:
        elements = await ad.fresh(tx)
        if not elements:
            return False
        new = [
            NewPlacement(job_id=JobId(each), site=elements[0].site, ce=elements[0].ce, dispatch=dispatch)
            for each in submission.job_ids()
        ]
        await placement.order(tx, new, "test")
        return all([bool(await placement.of_job(tx, each.job_id)) for each in new])


async def last(db: Database, job_id: int) -> Placement:
    async with db.transaction() as tx:
        return (await placement.of_job(tx, JobId(job_id)))[-1]


async def audited(system: System) -> None:
    assert system.facts is not None
    report = await audit(system.facts.postgres_url)
    assert report.ok, report.text(brief=True)


@pytest.mark.timeout(120)
async def test_a_job_with_preferences_is_ranked_placed_run_and_its_predictions_are_scored(
    client: Client,
) -> None:
    wanted = JobDescription(executable="/bin/true", cpu_time=60, preferences=JobPreferences())
    submission = await client.submit([wanted])
    assert await client.wait(submission.selector(), timeout=90) == {"Done": 1}
    found = await client.ranking(submission.ids[0][0])
    assert [(each.site, each.rank) for each in found.elements] == [("local", 1)]
    assert [each.attempt for each in found.placements] == [1]

    async def scored() -> bool:
        return any(each.scored for each in await client.predictions())

    await eventually(scored, within=30)


@pytest.mark.timeout(240)
async def test_a_job_whose_reservation_is_cancelled_is_placed_anew(system: System, client: Client) -> None:
    later = JobPreferences(earliest_start_after=3_600.0, latest_start_after=3_600.0)
    wanted = JobDescription(executable="/bin/true", cpu_time=60, preferences=later)
    submission = await client.submit(wanted)
    (job_id,) = submission.job_ids()

    async def confirmed() -> str:
        lines = [each async for each in client.reservations(job=job_id)]
        return next((each.agreement_id for each in lines if each.state == "Confirmed"), "")

    first = await eventually(confirmed, within=60)

    async def is_placed(count: int) -> bool:
        return len((await client.ranking(job_id)).placements) == count

    await eventually(lambda: is_placed(1), within=30)
    said = await client.cancel_reservations([first], "not this one")
    assert said.startswith(f"cancelled: {first};")
    await eventually(lambda: is_placed(2), within=60)
    lost, again = (await client.ranking(job_id)).placements
    assert (lost.state, lost.reason) == ("Failed", "RESERVATION_LOST")
    assert "not this one" in lost.reason_text
    assert again.state in ("Ordered", "Sent")
    second = await eventually(confirmed, within=30)
    assert second != first
    with pytest.raises(Rejected, match="RESERVATION_OVER"):
        await client.cancel_reservations([second, first])
    assert await confirmed() == second, "none of them was cancelled"
    await client.kill(submission.selector())
    await audited(system)


@pytest.mark.timeout(180)
async def test_jobs_with_preferences_run_by_pilots_of_their_own(
    system: System, client: Client, db: Database
) -> None:
    wanted = replace(HELLO, preferences=JobPreferences(reservation=False))
    brokered = await client.submit([wanted] * 2)
    usual = await client.submit(HELLO)
    await eventually(lambda: placed(db, brokered))
    assert await client.wait(brokered.selector(), timeout=120) == {"Done": 2}
    assert await client.wait(usual.selector(), timeout=120) == {"Done": 1}
    for job_id in brokered.job_ids():
        one = await last(db, job_id)
        assert (one.state, one.reason) == ("Ended", "DONE")
        async with db.transaction() as tx:
            (bound,) = await tx.fetch("select job_id from pilot where pilot_id = $1", one.pilot_id)
        assert bound["job_id"] == job_id
    await audited(system)


@pytest.mark.timeout(180)
async def test_a_direct_job_runs_and_its_outputs_are_there(
    system: System, client: Client, db: Database
) -> None:
    direct = await client.submit(replace(HELLO, dispatch="direct", output_sandbox=("out",)))
    await eventually(lambda: placed(db, direct, "direct"))
    assert await client.wait(direct.selector(), timeout=120) == {"Done": 1}
    (job_id,) = direct.job_ids()
    async with db.transaction() as tx:
        (attempt,) = await tx.fetch(
            "select outcome, stdout_tail, output_bytes from attempt where job_id = $1", job_id
        )
    assert (attempt["outcome"], attempt["stdout_tail"]) == ("done", "hello\n")
    assert attempt["output_bytes"] > 0
    await audited(system)
