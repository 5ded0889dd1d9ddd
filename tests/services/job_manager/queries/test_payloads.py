"""What payloads are told: their own job, while its lease lasts."""

from typing import Any

import pytest

from tests.services.world import World, pilot, result
from wms.auth.principal import Principal
from wms.ids import AttemptId
from wms.messages import queries, replies


def payload(attempt_id: AttemptId, pilot_id: str = "p-1") -> Principal:
    return Principal(
        kind="payload",
        owner=f"#job-{attempt_id.job_id}.{attempt_id.epoch}",
        group="",
        vo="",
        pilot_id=pilot_id,
        job_id=attempt_id.job_id,
        epoch=attempt_id.epoch,
        token_id="t",
        expires_at=4_000_000_000.0,
    )


async def shown(world: World, who: Any, job_id: int) -> Any:
    return await world.ask(who, queries.ShowJob(query_id="q", client="c", job_id=job_id))


async def test_a_payload_is_told_what_its_job_is(the_world: World) -> None:
    (held,) = await the_world.running()
    answer = await shown(the_world, payload(held), held.job_id)
    assert isinstance(answer, replies.JobDetail)
    assert answer.job.job_id == held.job_id
    why = await the_world.ask(payload(held), queries.WhyJob(query_id="q", client="c", job_id=held.job_id))
    assert isinstance(why, replies.JobWhy)
    lease = queries.ShowLease(query_id="q", client="c", job_id=held.job_id, epoch=held.epoch)
    assert isinstance(await the_world.ask(payload(held), lease), replies.HeldLease)


async def test_of_other_jobs_of_the_same_owner_it_is_told_nothing(the_world: World) -> None:
    (held,) = await the_world.running()
    (other,) = await the_world.submitted()
    answer = await shown(the_world, payload(held), other)
    assert (type(answer), answer.code) == (replies.Refused, "NOT_ALLOWED")


@pytest.mark.parametrize("how", ["expired", "ended", "older", "another pilot's"])
async def test_an_attempt_that_is_over_is_told_nothing(the_world: World, how: str) -> None:
    (held,) = await the_world.running()
    who = payload(held)
    if how == "expired":
        await the_world.expire(held.job_id)
    elif how == "ended":
        await the_world.report(finish=(result(held),))
    elif how == "older":
        who = payload(held._replace(epoch=type(held.epoch)(held.epoch + 1)))
    else:
        who = payload(held, "p-2")
    answer = await shown(the_world, who, held.job_id)
    assert (type(answer), answer.code) == (replies.Refused, "NOT_HELD")


async def test_its_lease_is_that_of_its_own_epoch(the_world: World) -> None:
    (held,) = await the_world.running()
    later = queries.ShowLease(query_id="q", client="c", job_id=held.job_id, epoch=type(held.epoch)(9))
    assert (await the_world.ask(payload(held), later)).code == "NOT_HELD"


async def test_a_pilots_own_questions_are_answered_as_before(the_world: World) -> None:
    (held,) = await the_world.running()
    lease = queries.ShowLease(query_id="q", client="c", job_id=held.job_id, epoch=held.epoch)
    assert isinstance(await the_world.ask(pilot(), lease), replies.HeldLease)
