"""Commands: each takes effect once, whoever sends it again, and only users' do."""

import msgspec

from tests.services.world import World, pilot, user
from wms.ids import CommandId
from wms.messages import replies
from wms.messages.commands import Control, Selector, Submit


async def test_an_order_sent_again_takes_effect_once(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    first = await the_world.order("hold", job_id, command_id="x")
    await the_world.order("release", job_id)
    again = await the_world.order("hold", job_id, command_id="x")
    assert (first.repeated, again.repeated) == (False, True)
    assert again.changed == first.changed
    assert await the_world.state(job_id) == "Waiting"


async def test_a_submission_sent_again_takes_effect_once(the_world: World) -> None:
    first = await the_world.submit({}, {}, {"array": 3}, command_id="x")
    again = await the_world.submit({}, {}, {"array": 3}, command_id="x")
    assert (first.repeated, again.repeated) == (False, True)
    assert first.ids == again.ids == ((1, 5),)
    assert len(await the_world.sql("select from job")) == 2
    assert [tuple(row) for row in await the_world.sql("select first, last from block")] == [(3, 5)]


async def test_one_sent_twice_in_one_batch_takes_effect_once(the_world: World) -> None:
    submit = Submit(command_id=CommandId("x"), jobs=(msgspec.Raw(b'{"executable":"/bin/true"}'),))
    first, second = await the_world.command(user(), submit, submit)
    assert isinstance(first, replies.Submitted)
    assert isinstance(second, replies.Submitted)
    assert (first.ids, first.repeated, second.repeated) == (second.ids, False, True)


async def test_another_body_under_the_same_id_is_refused(the_world: World) -> None:
    await the_world.submit({"array": 5}, command_id="x")
    reply = await the_world.submit({"array": 6}, command_id="x")
    assert isinstance(reply, replies.Refused)
    assert reply.code == "ID_REUSED"
    assert [tuple(row) for row in await the_world.sql("select first, last from sweep")] == [(1, 5)]


async def test_the_same_id_of_another_owner_is_another_submission(the_world: World) -> None:
    first = await the_world.submit({}, command_id="x")
    second = await the_world.submit({}, command_id="x", who=user("bob"))
    assert first.ids != second.ids


async def test_pilots_and_sites_submit_and_order_nothing(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    reply = await the_world.submit({}, who=pilot())
    assert isinstance(reply, replies.Refused)
    (reply,) = await the_world.command(
        pilot(),
        Control(command_id="k", action="kill", selector=Selector(ids=((job_id, job_id),))),  # type: ignore[arg-type]
    )
    assert isinstance(reply, replies.Refused)
    assert await the_world.state(job_id) == "Waiting"
