"""Who sees which reservations, by which conditions, and page by page."""

from typing import Any

from tests.services.agreement.offered import E, R, marked, offered, terms
from tests.services.world import World, user
from wms.agreement.state import AgreementState
from wms.messages import queries, replies


async def asked(world: World, who: Any = None, **conditions: Any) -> replies.Reservations:
    answer = await world.ask(who or user(), queries.ListReservations(query_id="q", **conditions))
    assert isinstance(answer, replies.Reservations)
    return answer


def names(page: replies.Reservations) -> list[str]:
    return [each.agreement_id for each in page.lines]


async def test_users_see_those_for_their_own_jobs(the_world: World) -> None:
    mine, second = await the_world.submitted(2)
    me = user()
    own = {"owner": me.owner, "group": me.group, "vo": me.vo}
    await offered(the_world, terms(mine, **own), terms(second, "a-2", **(own | {"owner": "eve"})))
    page = await asked(the_world)
    assert names(page) == ["a-1"]
    assert (page.lines[0].state, page.lines[0].job_id, page.after) == ("Requested", mine, None)
    assert names(await asked(the_world, user("eve", group="other"))) == []
    assert names(await asked(the_world, user("oz", "operator"))) == ["a-2", "a-1"]


async def test_those_that_are_over_are_listed_if_their_states_are_asked_for(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    me = user()
    await offered(the_world, terms(job_id, owner=me.owner, group=me.group, vo=me.vo))
    await marked(the_world, E.DENY, code=R.NO_ROOM, text="all is taken")
    assert names(await asked(the_world)) == []
    (line,) = (await asked(the_world, states=(AgreementState.DENIED,), site="A", job_id=job_id)).lines
    assert (line.reason, line.reason_text, line.start_at) == ("NO_ROOM", "all is taken", None)


async def test_pages_follow_each_other_without_gap_or_repetition(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    me = user()
    own = {"owner": me.owner, "group": me.group, "vo": me.vo}
    await offered(the_world, *(terms(job_id, f"a-{n}", **own) for n in range(5)))
    found: list[str] = []
    after = None
    for _ in range(3):
        page = await asked(the_world, limit=2, after=after)
        found += names(page)
        after = page.after
    assert found == ["a-4", "a-3", "a-2", "a-1", "a-0"]
    assert after is None
