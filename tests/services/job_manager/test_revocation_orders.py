"""Who may revoke what, and what becomes of it."""

from typing import Any

from tests.services.world import World, user
from wms.ids import CommandId
from wms.messages import replies
from wms.messages.commands import Revoke
from wms.messages.queries import ListRevocations

OZ = user("oz", "operator", group="ops", vo="ops")


async def ordered(world: World, who: Any = OZ, n: int = 1, **said: Any) -> Any:
    (answer,) = await world.command(who, Revoke(command_id=CommandId(f"r-{who.owner}-{n}"), **said))
    return answer


async def listed(world: World) -> list[tuple[str, str]]:
    answer = await world.ask(OZ, ListRevocations(query_id="q"))
    assert isinstance(answer, replies.RevocationList), answer
    return [(each.kind, each.value) for each in answer.revocations]


async def test_an_operator_revokes_and_lifts(the_world: World) -> None:
    assert "is revoked" in (await ordered(the_world, kind="subject", value="alice", reason="left")).said
    assert await listed(the_world) == [("subject", "alice")]
    assert "accepted again" in (await ordered(the_world, n=2, kind="subject", value="alice", lift=True)).said
    assert await listed(the_world) == []
    assert (await ordered(the_world, n=3, kind="subject", value="alice", lift=True)).code == "NOT_REVOKED"


async def test_a_token_is_revoked_for_longer_than_any_lives(the_world: World) -> None:
    await ordered(the_world, kind="token", value="t-9")
    (days,) = await the_world.sql("select extract(day from expires_at - now()) as days from revocation")
    assert days["days"] >= 30


async def test_a_user_revokes_the_token_in_use_and_no_other(the_world: World) -> None:
    ann = user("ann")
    assert (await ordered(the_world, ann, kind="token", value="other")).code == "NOT_ALLOWED"
    assert (await ordered(the_world, ann, 2, kind="subject", value="ann")).code == "NOT_ALLOWED"
    assert "is revoked" in (await ordered(the_world, ann, 3, kind="token", value=ann.token_id)).said
    assert (
        await ordered(the_world, ann, 4, kind="token", value=ann.token_id, lift=True)
    ).code == "NOT_ALLOWED"


async def test_only_operators_see_what_is_revoked(the_world: World) -> None:
    answer = await the_world.ask(user("ann"), ListRevocations(query_id="q"))
    assert answer.code == "NOT_ALLOWED"


async def test_a_pilot_that_is_not_there_is_not_revoked(the_world: World) -> None:
    assert (await ordered(the_world, kind="pilot", value="p-none")).code == "NO_SUCH_PILOT"
