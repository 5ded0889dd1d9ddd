"""Pilots that hold jobs, for tests of what they may do through a gateway."""

from pathlib import Path

from tests.services.gateway.conftest import Door
from tests.system.place import Place
from wms.auth.keys import load_key
from wms.auth.token import Claims, mint
from wms.client import Client, ClientSettings, JobDescription
from wms.db.database import Database
from wms.ids import AttemptId, Epoch, JobId
from wms.jobdesc.description import SandboxRef
from wms.runtime import clock

INSERT = (
    "insert into lease (job_id, epoch, pilot_id, request_id, phase, expires_at, site, ce, seq)"
    " values ($1, 1, $2, 'r', 'accepted', now() + interval '1 hour', 'A', 'ce', 1)"
)


def pilot_token(root: Path, pilot_id: str) -> str:
    """Return the token of a generic pilot."""
    claims = Claims(
        kind="pilot",
        owner="pilot_submitter",
        group="pilot",
        vo="atlas",
        rights=frozenset({"generic_pilot"}),
        pilot_id=pilot_id,
        site="A",
        ce="ce",
    )
    return mint(load_key(root / "keys" / "pilots.pem"), claims, 3_600, clock.timestamp())


async def held_job(
    place: Place, settings: ClientSettings, pilot_id: str, inputs: tuple[SandboxRef, ...] = ()
) -> AttemptId:
    """Submit a job with these inputs, and write down that a pilot holds it."""
    async with Client.connect(settings) as client:
        job_id = (await client.submit(JobDescription(executable="echo", input_sandbox=inputs))).ids[0][0]
    await executed(place, INSERT, job_id, pilot_id)
    return AttemptId(JobId(job_id), Epoch(1))


async def executed(place: Place, statement: str, *values: object) -> None:
    """Execute a statement in the database of the place."""
    db = await Database.connect(place.postgres, size=1, application="test")
    try:
        async with db.transaction() as tx:
            await tx.execute(statement, *values)
    finally:
        await db.close()


def attempt_url(door: Door, attempt_id: AttemptId, rest: str) -> str:
    """Return the address of an attempt's files."""
    return f"{door.url}/api/v1/attempts/{attempt_id.job_id}/{attempt_id.epoch}/{rest}"
