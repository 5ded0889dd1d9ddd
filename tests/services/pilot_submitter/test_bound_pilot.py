"""What the pilot of a placement asks for, and what its token lets it have."""

import tomllib
from datetime import UTC, datetime, timedelta

import msgspec

from tests.services.pilot_submitter.elements import ENDS, Site
from tests.services.pilot_submitter.placing import FakeQueue, Submitter, order
from wms.transfer.movers import TransferSettings


async def test_a_pilot_is_sent_for_the_job_alone_in_its_reservation(site: Site) -> None:
    queue = site.dispatcher(FakeQueue, "first", ENDS)
    assert isinstance(queue, FakeQueue)
    submitter = Submitter(site, queue)
    job = {"processors": 4, "memory_mb": 2_000, "wall_time": 600}
    job_id = await order(site, reservation="wms-7", walltime_seconds=930.0, job=job)
    await submitter.placing.send()
    (sent,) = queue.taken
    assert (sent.slots, sent.request.cores, sent.request.memory_mb) == (4, 4, 2_000)
    assert sent.request.walltime_seconds == 900, "whole minutes, no more than what is reserved"
    assert sent.request.attributes == {"reservation": "wms-7"}
    assert "most_jobs = 1" in sent.config
    assert await submitter.last(job_id) == ("Sent", "")
    await submitter.placing.send()
    assert len(queue.taken) == 1, "once"
    (row,) = await site.world.sql("select job_id, site, ce from pilot")
    assert tuple(row) == (job_id, "A", "first")
    await submitter.audited()


async def test_it_is_told_when_its_job_may_start_and_from_where_files_come_first(site: Site) -> None:
    queue = site.dispatcher(FakeQueue, "first", ENDS)
    assert isinstance(queue, FakeQueue)
    wishes = {"earliest_start_after": 3_600, "latest_start_after": 15}
    await order(site, predicted={"hosts": ["se.fast", "se.slow"]}, job={"preferences": wishes})
    await Submitter(site, queue).placing.send()
    config = msgspec.convert(tomllib.loads(queue.taken[0].config), type=_Told)
    (row,) = await site.world.sql("select submitted_at from job")
    earliest = row["submitted_at"] + timedelta(hours=1)
    assert (config.pilot.earliest_start, config.pilot.latest_start) == (
        earliest,
        earliest + timedelta(seconds=15),
    )
    assert config.transfers.first_hosts == ["se.fast", "se.slow"]
    assert config.pilot.walltime_seconds == queue.taken[0].request.walltime_seconds


class _Window(msgspec.Struct):
    earliest_start: datetime
    latest_start: datetime
    walltime_seconds: int


class _Told(msgspec.Struct):
    """What this test looks at of a pilot's configuration."""

    pilot: _Window
    transfers: TransferSettings


async def test_its_token_binds_it_to_the_job(site: Site) -> None:
    from wms.auth.orders import PilotCredential
    from wms.auth.token import Verifier
    from wms.runtime import clock

    queue = site.dispatcher(FakeQueue, "first", ENDS)
    assert isinstance(queue, FakeQueue)
    job_id = await order(site)
    await Submitter(site, queue).placing.send()
    verifier = Verifier.from_file(site.place / "keys" / "jwks.json")
    principal = verifier.verify(PilotCredential.parse(queue.taken[0].token).token, clock.timestamp())
    assert principal.job_id == job_id


async def test_a_job_without_a_wall_time_asks_for_the_usual_one(site: Site) -> None:
    queue = site.dispatcher(FakeQueue, "first", ENDS)
    assert isinstance(queue, FakeQueue)
    await order(site)
    await Submitter(site, queue).placing.send()
    assert queue.taken[0].request.walltime_seconds == 90_000


async def test_it_asks_for_no_more_than_is_left_of_its_agreement(site: Site) -> None:
    queue = site.dispatcher(FakeQueue, "first", ENDS)
    assert isinstance(queue, FakeQueue)
    start = datetime.now(UTC) + timedelta(hours=1)
    await site.world.sql(
        """insert into agreement (agreement_id, job_id, vo, owner, "group", site, ce, cpus, duration_seconds, flexible,
               expires_in_seconds, state, start_at, ends_at, expires_at)
           values ('a-1', 1, 'lhcb', 'ann', 'physics', 'A', 'first', 1, 900, true, 60, 'Confirmed', $1, $2, now())""",
        start,
        start + timedelta(minutes=15),
    )
    await order(site, agreement_id="a-1", reservation="r", start_at=start, job={"wall_time": 86_400})
    await Submitter(site, queue).placing.send()
    assert queue.taken[0].request.walltime_seconds == 14 * 60, "a minute may be lost at the start"
