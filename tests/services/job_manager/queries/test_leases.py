"""A pilot is told the inputs of jobs that it holds; of all other jobs nobody is told anything."""

from typing import Any

import pytest

from tests.services.world import World, pilot, user
from wms.ids import AttemptId
from wms.messages import replies
from wms.messages.queries import ShowLease

ONE, OTHER = "ab" * 32, "cd" * 32
INPUTS = [{"sha256": ONE, "size": 10}, {"sha256": OTHER, "size": 20, "directory": "more"}]


async def asked(world: World, who: Any, attempt_id: AttemptId) -> Any:
    return await world.ask(
        who, ShowLease(query_id="q", client="c", job_id=attempt_id.job_id, epoch=attempt_id.epoch)
    )


async def test_the_holder_is_told_the_inputs_of_its_job(the_world: World) -> None:
    (held,) = await the_world.running(input_sandbox=INPUTS)
    answer = await asked(the_world, pilot(), held)
    assert answer == replies.HeldLease(
        query_id="q", client="c", job_id=held.job_id, epoch=held.epoch, inputs=(ONE, OTHER)
    )


async def test_each_job_of_an_array_has_its_own_archives(the_world: World) -> None:
    values = [f"{ONE}:10", f"{OTHER}:20"]
    await the_world.submit({"parameters": {"archive": values}, "input_parameters": ["archive"]})
    held = await the_world.match(pilot(), 2)
    await the_world.report(accept=tuple(held))
    told = [(await asked(the_world, pilot(), each)).inputs for each in sorted(held)]
    assert told == [(ONE,), (OTHER,)]


async def test_nobody_else_is_told(the_world: World) -> None:
    (held,) = await the_world.running(input_sandbox=INPUTS)
    older = held._replace(epoch=type(held.epoch)(held.epoch + 1))
    for who, attempt_id in (
        (pilot("p-2"), held),
        (user(), held),
        (pilot(), older),
        (pilot(), held._replace(job_id=type(held.job_id)(10**9))),
    ):
        answer = await asked(the_world, who, attempt_id)
        assert isinstance(answer, replies.Refused)
        assert answer.code == "NOT_HELD"


@pytest.mark.parametrize("how", ["offered", "expired"])
async def test_an_offer_and_a_lease_that_is_over_are_no_hold(the_world: World, how: str) -> None:
    if how == "offered":
        await the_world.submitted(input_sandbox=INPUTS)
        (held,) = await the_world.match()
    else:
        (held,) = await the_world.running(input_sandbox=INPUTS)
        await the_world.expire(held.job_id)
    assert isinstance(await asked(the_world, pilot(), held), replies.Refused)
