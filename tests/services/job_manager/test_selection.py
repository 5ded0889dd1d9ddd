"""Which jobs a selector means: by job group, by submission, by when they changed; with rows of their own and in blocks."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec import Raw

from tests.services.world import World, result, user
from wms.audit import audit
from wms.ids import CommandId
from wms.job.reasons import Code
from wms.messages import replies
from wms.messages.commands import Control, Selector, Submit
from wms.messages.queries import CountJobs, ListJobs, ListSweeps


@pytest.fixture(autouse=True)
async def _audited(the_world: World) -> Any:
    """Whatever a test did, the auditor finds nothing."""
    yield
    report = await audit(the_world.url)
    assert report.ok, report.text(brief=True)


async def counted(world: World, **selector: Any) -> dict[str, int]:
    query = CountJobs(query_id="q", selector=Selector(**selector))
    answer = await world.ask(user(), query)
    assert isinstance(answer, replies.JobCounts), answer
    return answer.counts


async def ordered(world: World, action: Any, selector: Selector) -> Any:
    """Order this, under an id that is the action's name."""
    (answer,) = await world.command(
        user(), Control(command_id=CommandId(action), action=action, selector=selector)
    )
    return answer


async def test_jobs_are_selected_by_their_group_with_rows_and_in_blocks(the_world: World) -> None:
    alone = await the_world.submitted(2, job_group="fits")
    swept = await the_world.swept(100, job_group="fits")
    await the_world.submitted(3)
    await the_world.swept(7, job_group="others")
    assert await counted(the_world, job_group="fits") == {"Waiting": 102}
    await the_world.match()  # of a sweep some have rows now
    page = await the_world.ask(
        user(), ListJobs(query_id="q", selector=Selector(job_group="fits"), limit=1_000)
    )
    assert [job.job_id for job in page.jobs] == [*alone, *swept]
    assert {job.job_group for job in page.jobs} == {"fits"}
    sweeps = await the_world.ask(user(), ListSweeps(query_id="q", job_group="fits"))
    assert [(sweep.first, sweep.job_group) for sweep in sweeps.sweeps] == [(swept[0], "fits")]
    assert (await ordered(the_world, "kill", Selector(job_group="others"))).changed == 7


async def test_jobs_are_selected_by_the_submission_that_brought_them(the_world: World) -> None:
    parts = [
        Submit(command_id=CommandId(f"monday/{n}"), jobs=(Raw(b'{"executable":"true","array":3}'),))
        for n in range(2)
    ]
    await the_world.command(user(), *parts)
    others = await the_world.submitted(2)
    assert await counted(the_world, submission="monday") == {"Waiting": 6}
    assert await counted(the_world, submission="monday", ids=((others[0], 10**6),)) == {}
    refused = await the_world.ask(user(), CountJobs(query_id="q", selector=Selector(submission="mon")))
    assert (refused.code, refused.message) == (
        "NO_SUCH_SUBMISSION",
        "you made no submission with the id mon",
    )
    assert (await ordered(the_world, "kill", Selector(submission="monday"))).changed == 6
    assert (await ordered(the_world, "hold", Selector(submission="kill"))).code == "NO_SUCH_SUBMISSION"


async def test_jobs_are_selected_by_when_they_changed_and_counted_by_reason(the_world: World) -> None:
    await the_world.swept(5)
    (held,) = await the_world.running()
    async with the_world.db.transaction() as tx:
        now = await tx.now()
    await the_world.report(finish=(result(held, "failed", Code.MEMORY_LIMIT),))
    assert await counted(the_world, changed_since=now) == {"Failed": 1}
    assert await counted(the_world, changed_since=now + timedelta(hours=1)) == {}
    query = CountJobs(query_id="q", selector=Selector(everything=True), by_reason=True)
    assert (await the_world.ask(user(), query)).reasons == {
        "Failed": {"MEMORY_LIMIT": 1},
        "Waiting": {"QUEUED": 5},
    }


async def test_what_is_submitted_held_is_never_given_to_a_pilot_before_its_release(the_world: World) -> None:
    job, sweep = Raw(b'{"executable":"true"}'), Raw(b'{"executable":"true","array":3}')
    (answer,) = await the_world.command(
        user(),
        Submit(command_id=CommandId("c"), jobs=(job, sweep), hold=True),
    )
    assert isinstance(answer, replies.Submitted)
    assert await the_world.match() == []
    assert await counted(the_world, everything=True) == {"Held": 4}
    (low, high) = answer.ids[0]
    assert (await the_world.order("release", *range(low, high + 1))).changed == 4
    assert len(await the_world.match()) == 1
