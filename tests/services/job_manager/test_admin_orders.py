"""Orders of administrators about shares and limits."""

import pytest
from msgspec.structs import asdict

from tests.services.matcher.test_limit_gate import most
from tests.services.matcher.test_policy_refresh import resetting, ruled, setting, shown
from tests.services.world import World, pilot, user
from wms.ids import CommandId
from wms.matching.limits import Kind, LimitKey, LimitRule
from wms.messages import limits as sent
from wms.messages import queue_changes, replies
from wms.messages.commands import DropLimit, SetLimit
from wms.messages.queries import ListLimits

ADMIN = user("ada", "job_administrator")


async def test_what_is_not_said_stays(the_world: World) -> None:
    await ruled(the_world, setting("1", job_share=5.0, background=True))
    await ruled(the_world, setting("2", job_sharing=True))
    line = (await shown(the_world))["lhcb", "physics"]
    assert (line.job_share, line.job_sharing, line.background) == (5.0, True, True)
    assert (line.source, line.said_by) == ("set", "ada")


async def test_who_may_not_is_refused_and_changes_nothing(the_world: World) -> None:
    strangers = (user(), user("bo", "job_monitor"), user("eve", "job_administrator", vo="cms", group="cms"))
    for n, who in enumerate(strangers):
        for rule in (setting(f"a{n}", job_share=1.0), resetting(f"b{n}")):
            answer = await ruled(the_world, rule, who)
            assert isinstance(answer, replies.Refused)
            assert answer.code == "NOT_ALLOWED"
            assert "job_administrator" in answer.remedy
    assert await shown(the_world) == {}
    assert the_world.take(queue_changes.TOPIC) == []


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


OPERATOR = user("oz", "operator", vo="ops", group="ops")


ALICE = LimitKey("A", "", "owner", "alice")


def set_limit(n: int, limit: LimitRule) -> SetLimit:
    return SetLimit(command_id=CommandId(f"set-{n}"), limit=sent.Limit(**asdict(limit)))


def drop_limit(n: int, *, reset: bool = False, kind: Kind = "running") -> DropLimit:
    return DropLimit(command_id=CommandId(f"drop-{n}"), kind=kind, key=sent.CounterKey(*ALICE), reset=reset)


async def test_a_limit_is_ordered_shown_and_lifted(the_world: World) -> None:
    await the_world.submit({"array": 3}, who=user("alice"))
    (said,) = await the_world.command(OPERATOR, set_limit(1, most(2, attribute="owner", value="alice")))
    assert isinstance(said, replies.Ruled)
    assert said.said == "owner=alice at A: at most 2 running"
    assert b'{"type":"rules-changed"}' in the_world.take(queue_changes.TOPIC)
    await the_world.rules.refresh()
    assert len(await the_world.match(slots=3)) == 2
    listed = await the_world.ask(OPERATOR, ListLimits(query_id="q"))
    assert [(each.limit.most, each.source, each.said_by) for each in listed.limits] == [(2, "set", "oz")]
    assert [(each.value, each.running) for each in listed.counts] == [("alice", 2)]
    assert (await the_world.ask(user("bob"), ListLimits(query_id="q"))).counts == (), "others' are not his"
    await the_world.command(OPERATOR, drop_limit(1))
    await the_world.rules.refresh()
    assert len(await the_world.match(pilot("p-2"), slots=3)) == 1


async def test_what_was_set_goes_before_the_file(the_world: World) -> None:
    await the_world.rules.declare({}, [most(2, attribute="owner", value="alice")])
    await the_world.command(OPERATOR, set_limit(1, most(5, attribute="owner", value="alice")))
    await the_world.rules.declare({}, [most(3, attribute="owner", value="alice")])
    (shown,) = (await the_world.ask(OPERATOR, ListLimits(query_id="q"))).limits
    assert (shown.limit.most, shown.source) == (5, "set")
    await the_world.command(OPERATOR, drop_limit(2))
    (shown,) = (await the_world.ask(OPERATOR, ListLimits(query_id="q"))).limits
    assert shown.lifted, "the file's too"
    await the_world.command(OPERATOR, drop_limit(3, reset=True))
    (shown,) = (await the_world.ask(OPERATOR, ListLimits(query_id="q"))).limits
    assert (shown.limit.most, shown.source, shown.lifted) == (3, "file", False)


async def test_only_operators_set_limits(the_world: World) -> None:
    for n, who in enumerate((user(), ADMIN, user("s", "job_monitor"))):
        for rule in (set_limit(n, most(1)), drop_limit(n)):
            (answer,) = await the_world.command(who, rule)
            assert isinstance(answer, replies.Refused)
            assert (answer.code, "operator" in answer.remedy) == ("NOT_ALLOWED", True)
    assert (await the_world.ask(OPERATOR, ListLimits(query_id="q"))).limits == ()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (LimitRule(most=1), "names its site"),
        (LimitRule(site="A", attribute="owner", most=1), "owner=alice"),
        (LimitRule(site="A", value="x", most=1), "names no value"),
        (LimitRule(kind="rate", site="A", most=1), "jobs per second"),
        (LimitRule(kind="rate", site="A", most=0, per_second=1.0), "at least one"),
        (LimitRule(kind="waiting", most=1), "owner, owner_group, vo"),
    ],
)
async def test_a_wrong_limit_is_refused_with_what_is_wrong(
    the_world: World, wrong: LimitRule, said: str
) -> None:
    (answer,) = await the_world.command(OPERATOR, set_limit(1, wrong))
    assert isinstance(answer, replies.Refused)
    assert (answer.code, bool(answer.remedy)) == ("BAD_LIMIT", True)
    assert said in answer.message


async def test_what_is_not_there_is_neither_lifted_nor_reset(the_world: World) -> None:
    for n, reset in enumerate((False, True)):
        (answer,) = await the_world.command(OPERATOR, drop_limit(n, reset=reset))
        assert isinstance(answer, replies.Refused)
        assert answer.code == "NOT_SET"
