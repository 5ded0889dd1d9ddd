"""Orders about sites and elements: shut, opened, tested and forgotten."""

from typing import Any

import pytest

from tests.services.elements import Place
from tests.services.job_manager.queries.test_answer import AD
from tests.services.world import user, world
from wms.audit.auditor import audit
from wms.ids import CommandId
from wms.messages import replies
from wms.messages.commands import RuleSite
from wms.messages.queries import ShowSite


@pytest.mark.parametrize("action", ["ban", "drain"])
async def test_what_an_operator_shuts_gets_no_jobs_until_it_is_opened(place: Place, action: str) -> None:
    reply = await place.rule(action)
    assert reply.said == f"A is {'banned' if action == 'ban' else 'draining'} by oz: why not"
    await place.world.submitted(2)
    assert await place.run("good", 2) == []
    reply = await place.rule("unban")
    assert reply.said == "A is healthy"
    assert len(await place.run("good", 2)) == 2
    detail = await place.world.ask(user(), ShowSite(query_id="q", site="A"))
    assert [(each.event, each.said_by, each.ce) for each in detail.moves] == [
        ("unban", "oz", ""),
        (action, "oz", ""),
    ]


async def test_an_element_is_banned_by_itself(place: Place) -> None:
    await place.rule("ban", "hole")
    assert await place.states() == {"good": "healthy", "hole": "banned"}
    await place.world.submitted(2)
    assert await place.run("hole", 1) == []
    assert len(await place.run("good", 1)) == 1
    await place.rule("unban")
    assert await place.states() == {"good": "healthy", "hole": "healthy"}


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ({"action": "ban", "who": user()}, "NOT_ALLOWED"),
        ({"action": "test", "who": user("ad", "job_administrator")}, "NOT_ALLOWED"),
        ({"action": "ban", "reason": " "}, "NO_REASON"),
        ({"action": "drain", "ce": "typo"}, "NO_SUCH_SITE"),
        ({"action": "unban"}, "NOT_SET"),
    ],
)
async def test_orders_that_make_no_sense_or_are_not_allowed_change_nothing(
    place: Place, parts: dict[str, Any], code: str
) -> None:
    reply = await place.rule(**parts)
    assert isinstance(reply, replies.Refused)
    assert reply.code == code
    assert await place.states() == {"good": "healthy", "hole": "healthy"}
    assert await place.world.sql("select from ce_move") == []


async def test_a_test_sends_a_canary_to_each_element_even_where_work_is_shut_out(place: Place) -> None:
    await place.rule("ban", "hole")
    reply = await place.rule("test")
    assert sorted(reply.jobs) == await place.canaries()
    again = await place.rule("test")
    assert again.jobs == reply.jobs, "one at a time"
    for ce in ("good", "hole"):
        assert len(await place.run(ce, 3)) == 1
    await place.look()
    assert await place.states() == {"good": "healthy", "hole": "banned"}, "what is banned stays so"


async def test_a_test_of_a_quarantined_element_releases_it_when_it_comes_back(place: Place) -> None:
    await place.eaten()
    await place.rule("test", "hole")
    assert (await place.states())["hole"] == "probing"
    assert len(await place.run("hole", 1)) == 1
    await place.look()
    assert (await place.states())["hole"] == "healthy"


async def test_an_operator_lets_an_element_be_forgotten(database: str) -> None:
    async with world(database) as place:
        await place.sql(AD, "Z", 2, 10)
        await place.sql(
            "update ad set advertised_at = '9999-01-01', expires_at = '9999-01-01' where ce = 'ce1'"
        )

        async def forget(ce: str, *rights: str) -> Any:
            order = RuleSite(
                command_id=CommandId(f"f{ce}{rights}"), action="forget", site="Z", ce=ce, reason="junk"
            )
            (reply,) = await place.command(user("oz", *rights), order)
            return reply

        assert isinstance(await forget("ce1"), replies.Refused)
        done = await forget("ce1", "operator")
        assert isinstance(done, replies.Ruled)
        assert "Z/ce1" in done.said
        assert [row["ce"] for row in await place.sql("select ce from ad")] == ["ce2"]
        assert isinstance(await forget("", "operator"), replies.Ruled)
        assert await place.sql("select from ad") == []
        assert isinstance(await forget("ce9", "operator"), replies.Refused)
        orders = await place.sql("select operator, action, subject, reason from operator_order order by 1")
        assert [tuple(row) for row in orders] == [
            ("oz", "forget site", "Z/ce1", "junk"),
            ("oz", "forget site", "Z/ce2", "junk"),
        ]
        assert (await audit(database)).ok


async def test_the_stations_of_an_element_are_told(place: Place) -> None:
    for names, told in (('["cab", "clued0"]', ("cab", "clued0")), ('"cab"', ()), ("null", ())):
        await place.world.sql(
            "update ad set attributes = jsonb_build_object('StationNames', $1::text::jsonb) where ce = 'good'",
            names,
        )
        detail = await place.world.ask(user(), ShowSite(query_id="q", site="A", ce="good"))
        assert [each.stations for each in detail.elements] == [told]
