"""What is said of shares: set and reset at run time by who may, believed before the file, told to every matcher."""

from typing import Any

from services.matcher.policy_refresh import PolicyRefresh
from tests.services.world import World, user
from wms.ids import CommandId
from wms.matching.shares import GroupShare
from wms.messages import changes, replies
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
    assert the_world.take(changes.TOPIC)[-1] == b'{"type":"rules-changed"}'
    assert await weight(the_world, rules, job_id) == 2000
    await ruled(the_world, resetting())
    assert await weight(the_world, rules, job_id) == 1000


async def test_a_share_is_of_one_vo(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    await the_world.reconcile()
    await ruled(the_world, setting(vo="cms", job_share=5.0), OPERATOR)
    assert await weight(the_world, the_world.rules, job_id) == 1000


async def test_what_is_not_said_stays(the_world: World) -> None:
    await ruled(the_world, setting("1", job_share=5.0, background=True))
    await ruled(the_world, setting("2", job_sharing=True))
    line = (await shown(the_world))["lhcb", "physics"]
    assert (line.job_share, line.job_sharing, line.background) == (5.0, True, True)
    assert (line.source, line.said_by) == ("set", "ada")


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
    the_world.take(changes.TOPIC)
    await rules.declare({"lhcb": {"top": GroupShare()}})
    assert set(await shown(the_world)) == {("lhcb", "top")}
    assert the_world.take(changes.TOPIC) == [b'{"type":"rules-changed"}']
    await rules.declare({"lhcb": {"top": GroupShare()}})
    assert the_world.take(changes.TOPIC) == [], "nothing is new"


async def test_who_may_not_is_refused_and_changes_nothing(the_world: World) -> None:
    strangers = (user(), user("bo", "job_monitor"), user("eve", "job_administrator", vo="cms", group="cms"))
    for n, who in enumerate(strangers):
        for rule in (setting(f"a{n}", job_share=1.0), resetting(f"b{n}")):
            answer = await ruled(the_world, rule, who)
            assert isinstance(answer, replies.Refused)
            assert answer.code == "NOT_ALLOWED"
            assert "job_administrator" in answer.remedy
    assert await shown(the_world) == {}
    assert the_world.take(changes.TOPIC) == []


async def test_refusals_say_what_to_do(the_world: World) -> None:
    empty = await ruled(the_world, setting("1"))
    assert (empty.code, bool(empty.remedy)) == ("NOTHING_SAID", True)
    unset = await ruled(the_world, resetting("2"))
    assert (unset.code, bool(unset.remedy)) == ("NOT_SET", True)


async def test_an_order_that_comes_twice_is_carried_out_once(the_world: World) -> None:
    first = await ruled(the_world, setting("1", job_share=5.0))
    await ruled(the_world, setting("2", job_share=6.0))
    again = await ruled(the_world, setting("1", job_share=5.0))
    assert (again.said, again.repeated) == (first.said, True)
    assert (await shown(the_world))["lhcb", "physics"].job_share == 6
    other = await ruled(the_world, setting("1", job_share=7.0))
    assert other.code == "ID_REUSED"


async def test_groups_are_shown_with_what_waits_and_runs(the_world: World) -> None:
    await the_world.running(2)
    await the_world.submitted(3)
    await the_world.submit({}, who=user("bob"))
    await the_world.submit({}, who=user("cleo", group="cms", vo="cms"))
    line = (await shown(the_world))["lhcb", "physics"]
    assert (line.owners, line.waiting_jobs, line.running_jobs, line.source) == (2, 4, 2, "default")
    assert set(await shown(the_world)) == {("lhcb", "physics")}, "of one's own VO"
    assert set(await shown(the_world, OPERATOR)) == {("lhcb", "physics"), ("cms", "cms")}
