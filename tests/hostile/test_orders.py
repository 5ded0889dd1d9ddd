"""Orders that no service signed are obeyed by no agent, whoever they claim to be for."""

import asyncpg
import msgspec

from tests.hostile.innocent import Innocent
from tests.hostile.target import Target
from tests.services.job_agent.payload.processes import alive, new_tag
from tests.waiting import eventually
from wms.auth.orders import OrderKeys
from wms.auth.token import Claims
from wms.client import JobDescription, select
from wms.embedded.keys_and_tokens import VO
from wms.ids import AttemptId, Epoch, JobId, PilotId, ReportId, RequestId
from wms.messages import replies, reports
from wms.messages.site_inbox import Answer, Kill, Offer, OfferedJob, inbox
from wms.messages.wire import encode

TOPIC = inbox("local")
STRANGER = OrderKeys([b"?" * 32])


async def test_forged_offers_answers_and_kills_run_nothing_and_end_nothing(
    target: Target, innocent: Innocent
) -> None:
    # What a contained payload writes is seen by nobody; that it runs is.
    tag = new_tag()
    async with innocent.beside():
        for pilot_id, job_id, epoch in await _held(target):
            evil = OfferedJob(
                job_id=JobId(job_id + 10_000),
                epoch=Epoch(1),
                owner="innocent",
                owner_group="users",
                vo="local",
                description=_sleeping(tag),
            )
            held = AttemptId(JobId(job_id), Epoch(epoch))
            pilot = PilotId(pilot_id)
            forged = [
                Offer(pilot_id=pilot, request_id=RequestId("r-1"), jobs=(evil,), hold_seconds=60),
                Answer(
                    pilot_id=pilot,
                    report_id=ReportId("1"),
                    granted=(evil.attempt_id,),
                    lost=(held,),
                    kill=(held,),
                    drain=True,
                    lease_seconds=60,
                ),
                Kill(pilot_id=pilot, jobs=(held,)),
            ]
            plain = list(map(encode, forged))
            signed = [STRANGER.sign(TOPIC, pilot.encode(), each) for each in plain]
            payloads = plain + signed
            await target.kafka.send_many(TOPIC, [pilot.encode()] * len(payloads), payloads)
        ids = (await innocent.client.submit(JobDescription(executable="/bin/true", cpu_time=100))).ids
        assert await innocent.client.wait(select([ids[0][0]]), timeout=60) == {"Done": 1}
    assert alive(tag) == []


async def test_output_that_nobody_asked_for_reaches_no_inbox(target: Target, innocent: Innocent) -> None:
    """A pilot may send `peeked` with any asker in it; without the asker's ticket it goes nowhere."""
    reader = await target.kafka.reader(replies.inbox(innocent.owner))
    await reader.assign_end()
    async with innocent.beside():
        for pilot_id, job_id, epoch in await _held(target):
            token = target.token(
                Claims(
                    kind="pilot",
                    owner="mallory",
                    group="users",
                    vo=VO,
                    pilot_id=pilot_id,
                    site="local",
                    ce="local",
                )
            )
            forged = reports.Peeked(
                pilot_id=PilotId(pilot_id), job_id=JobId(job_id), epoch=Epoch(epoch), stream="stdout", offset=0, size=5,
                text="owned", query_id="q-1", client="c", asker=innocent.owner, ticket="dGlja2V0",
            )  # fmt: skip
            await target.send(reports.TOPIC, [forged] * 20, token)
    found = [each.payload for each in await reader.poll(1.0, 10_000)]
    await reader.close()
    assert found, "the innocent user's own replies are seen"
    assert not any(b"owned" in each for each in found)


async def _held(target: Target) -> list[tuple[str, int, int]]:
    """Return who holds which job under which epoch."""

    async def held() -> list[tuple[str, int, int]]:
        connection = await asyncpg.connect(target.database)
        try:
            return [tuple(row) for row in await connection.fetch("select pilot_id, job_id, epoch from lease")]
        finally:
            await connection.close()

    return await eventually(held)


def _sleeping(tag: str) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(JobDescription(executable="/bin/sleep", arguments=(tag,))))
