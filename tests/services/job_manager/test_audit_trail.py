"""What the audit trail holds after orders and refusals."""

from typing import Any

from services.job_manager.commands import on_refused
from tests.services.world import World, pilot, user
from wms.errors import Rejected
from wms.ids import CommandId
from wms.messages import replies
from wms.messages.commands import Control, Selector, SetShare, Submit
from wms.messages.queries import ListAuditTrail

OZ = user("oz", "operator", group="ops", vo="ops")
SHARE = SetShare(command_id=CommandId("s-1"), vo="lhcb", owner_group="physics", job_share=5.0)


async def trail(world: World, who: Any = OZ, **sought: Any) -> tuple[replies.AuditLine, ...]:
    answer = await world.ask(who, ListAuditTrail(query_id="q", **sought))
    assert isinstance(answer, replies.AuditTrail), answer
    return answer.lines


async def test_an_order_on_jobs_is_written_with_its_answer(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    await the_world.order("kill", job_id)
    (line,) = await trail(the_world, job_id=job_id)
    assert (line.owner, line.vo, line.action, line.code) == ("ann", "lhcb", "kill", "")
    assert line.answer == "1 changed, 0 not"
    assert f"[{job_id},{job_id}]" in line.subject


async def test_an_order_that_comes_twice_is_written_once(the_world: World) -> None:
    kill = Control(command_id=CommandId("k"), action="kill", selector=Selector(everything=True))
    await the_world.command(user(), kill)
    await the_world.command(user(), kill)
    assert len(await trail(the_world)) == 1


async def test_refusals_are_written_too(the_world: World) -> None:
    await the_world.command(user(), SHARE)
    await the_world.command(pilot(), SHARE)
    await the_world.command(user("ada", "job_administrator"), SHARE)
    lines = await trail(the_world)
    assert [(each.owner, each.code) for each in lines] == [
        ("ada", ""), ("pilot_submitter", "NOT_ALLOWED"), ("ann", "NOT_ALLOWED"),
    ]  # fmt: skip
    assert [each.owner for each in await trail(the_world, refused=True)] == ["pilot_submitter", "ann"]


async def test_an_order_with_a_bad_token_is_written_under_its_owner(the_world: World) -> None:
    async with the_world.db.transaction() as tx:
        await on_refused(tx, SHARE, Rejected("TOKEN_REVOKED", "the token was revoked"), "eve")
        await on_refused(tx, SHARE, Rejected("TOKEN_INVALID", "it is forged"), "")
        await on_refused(tx, SHARE, Rejected("TOO_FAST", "slow down"), "eve")
    (line,) = await trail(the_world)
    assert (line.owner, line.code, line.vo) == ("eve", "TOKEN_REVOKED", "")


async def test_what_jobs_are_given_is_not_repeated(the_world: World) -> None:
    limited = user("ann").__class__(**{**_fields(user("ann")), "actions": frozenset({"see"})})
    submit = Submit(command_id=CommandId("x"), jobs=())
    await the_world.command(limited, submit)
    edit = Control(
        command_id=CommandId("e"), action="edit", selector=Selector(everything=True), changes={"environment": _raw()}
    )  # fmt: skip
    await the_world.command(user(), edit)
    lines = await trail(the_world)
    assert {each.action for each in lines} == {"submit", "edit"}
    assert all("secret" not in each.subject for each in lines)


async def test_each_sees_what_is_in_reach(the_world: World) -> None:
    for who in (user("ann"), user("bob"), user("eve", vo="cms")):
        await the_world.command(who, SHARE)
    assert {each.owner for each in await trail(the_world, user("ann"))} == {"ann"}
    assert await trail(the_world, user("ann"), owner="bob") == ()
    assert {each.owner for each in await trail(the_world, user("ada", "job_administrator"))} == {"ann", "bob"}
    assert {each.owner for each in await trail(the_world)} == {"ann", "bob", "eve"}


async def test_pages_follow_each_other(the_world: World) -> None:
    for n in range(5):
        kill = Control(command_id=CommandId(f"k-{n}"), action="kill", selector=Selector(everything=True))
        await the_world.command(user(), kill)
    first = await the_world.ask(OZ, ListAuditTrail(query_id="q", limit=3))
    rest = await the_world.ask(OZ, ListAuditTrail(query_id="q", limit=3, before=first.before))
    assert [each.command_id for each in (*first.lines, *rest.lines)] == ["k-4", "k-3", "k-2", "k-1", "k-0"]
    assert rest.before is None


def _fields(who: Any) -> dict[str, Any]:
    return {name: getattr(who, name) for name in who.__struct_fields__}


def _raw() -> Any:
    import msgspec

    return msgspec.Raw(b'{"KEY":"secret"}')
