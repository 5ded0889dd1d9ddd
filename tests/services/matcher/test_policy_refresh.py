"""What is said of shares: set and reset at run time by who may, believed before the file, told to every matcher."""

from typing import Any

from services.matcher.policy_refresh import PolicyRefresh
from tests.services.world import World, user
from wms.ids import CommandId
from wms.matching.shares import GroupShare
from wms.messages import queue_changes, replies
from wms.messages.commands import ResetShare, SetShare
from wms.messages.queries import ListShares

ADMIN = user("ada", "job_administrator")


OPERATOR = user("oz", "operator", vo="ops", group="ops")


def setting(command_id: str = "c-1", **said: Any) -> SetShare:
    return SetShare(**{"command_id": CommandId(command_id), "vo": "lhcb", "owner_group": "physics", **said})


def resetting(command_id: str = "c-2", **said: Any) -> ResetShare:
    return ResetShare(**{"command_id": CommandId(command_id), "vo": "lhcb", "owner_group": "physics", **said})


async def ruled(world: World, rule: Any, who: Any = ADMIN) -> Any:
    (reply,) = await world.command(who, rule)
    return reply


async def shown(world: World, who: Any = ADMIN) -> dict[tuple[str, str], replies.ShareLine]:
    found = await world.ask(who, ListShares(query_id="q"))
    return {(line.vo, line.owner_group): line for line in found.shares}


async def weight(world: World, rules: PolicyRefresh, job_id: int) -> float:
    await rules.refresh()
    return world.index.weight((await world.job(job_id))["tq_id"])


async def test_what_is_set_is_what_matchers_draw_by(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    await the_world.reconcile()
    rules = the_world.rules
    assert await weight(the_world, rules, job_id) == 1000
    answer = await ruled(the_world, setting(job_share=2000.0, job_sharing=True))
    assert answer.said == "lhcb/physics has a share of 2000, its members share their jobs"
    assert the_world.take(queue_changes.TOPIC)[-1] == b'{"type":"rules-changed"}'
    assert await weight(the_world, rules, job_id) == 2000
    await ruled(the_world, resetting())
    assert await weight(the_world, rules, job_id) == 1000


async def test_a_share_is_of_one_vo(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    await the_world.reconcile()
    await ruled(the_world, setting(vo="cms", job_share=5.0), OPERATOR)
    assert await weight(the_world, the_world.rules, job_id) == 1000


async def test_what_was_set_goes_before_the_file_until_it_is_reset(the_world: World) -> None:
    rules = the_world.rules
    await rules.declare({"lhcb": {"physics": GroupShare(job_share=300)}})
    assert (await shown(the_world))["lhcb", "physics"].source == "file"
    await ruled(the_world, setting(job_share=2000.0))
    # A matcher that starts again, with another file, changes nothing that was set.
    await rules.declare({"lhcb": {"physics": GroupShare(job_share=400)}})
    line = (await shown(the_world))["lhcb", "physics"]
    assert (line.job_share, line.source) == (2000, "set")
    answer = await ruled(the_world, resetting())
    assert "share of 400" in answer.said
    assert "as the file says" in answer.said
    assert (await shown(the_world))["lhcb", "physics"].source == "file"


async def test_what_the_file_says_no_more_holds_no_more(the_world: World) -> None:
    rules = the_world.rules
    await rules.declare({"lhcb": {"physics": GroupShare(job_share=300), "top": GroupShare()}})
    the_world.take(queue_changes.TOPIC)
    await rules.declare({"lhcb": {"top": GroupShare()}})
    assert set(await shown(the_world)) == {("lhcb", "top")}
    assert the_world.take(queue_changes.TOPIC) == [b'{"type":"rules-changed"}']
    await rules.declare({"lhcb": {"top": GroupShare()}})
    assert the_world.take(queue_changes.TOPIC) == [], "nothing is new"
