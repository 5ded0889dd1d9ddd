"""An element that eats jobs gets none, is tried by canaries, and is trusted again; sites are banned, drained and tested."""

import itertools
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from services.pilot_submitter.ce_endpoints import CeEndpoints
from services.pilot_submitter.ce_health import HealthJudge
from tests.services.world import World, ids, pilot, result, user
from wms.audit.auditor import audit
from wms.auth.principal import Principal
from wms.dispatch.local import LocalDispatcher
from wms.ids import AttemptId, CommandId, JobId
from wms.job.reasons import Code
from wms.matching.canary import OWNER
from wms.messages import events, replies
from wms.messages.commands import RuleSite
from wms.messages.queries import ListSites, ShowSite, WhyJob
from wms.provisioning.health import HealthPolicy
from wms.site import ComputingElement

NUMBERS = itertools.count(1)
OPS = user("oz", "operator")
TERMS = HealthPolicy(failures=4, first_pause_seconds=60)


class Place:
    """Site A with the elements `good` and `hole`, and what watches over them."""

    def __init__(self, world: World, watch: HealthJudge) -> None:
        self.world = world
        self._watch = watch

    async def look(self) -> None:
        """Have everybody look once: the submitter's watch, the job manager's canaries, the matcher."""
        await self._watch.look()
        await self.world.canaries.look(self.world.db)
        await self.world.standing.refresh()

    async def run(self, ce: str, count: int, code: Code = Code.DONE) -> list[JobId]:
        """Have a new pilot at an element take up to so many jobs, which all end like this; return them."""
        who = msgspec.structs.replace(pilot(f"p-{next(NUMBERS)}"), ce=ce)
        held = await self.world.match(who, count)
        await self._end(who, held, code)
        return ids(held)

    async def _end(self, who: Principal, held: list[AttemptId], code: Code) -> None:
        if held:
            await self.world.report(who, accept=tuple(held))
            await self.world.report(who, start=tuple(held))
            outcome = "done" if code is Code.DONE else "failed"
            await self.world.report(who, finish=tuple(result(each, outcome, code) for each in held))

    async def eaten(self, jobs: int = 4) -> None:
        """Let `hole` eat jobs of the same kind that do well at `good`: a fault that is injected."""
        await self.world.submitted(2 * jobs)
        assert len(await self.run("good", jobs)) == jobs
        assert len(await self.run("hole", jobs, Code.EXIT_CODE)) == jobs
        await self.look()

    async def later(self, seconds: float) -> None:
        """Let so much time pass for elements and canaries."""
        await self.world.sql("update ce_state set until = until - make_interval(secs => $1)", seconds)
        await self.world.sql("update canary set sent_at = sent_at - make_interval(secs => $1)", seconds)

    async def rule(self, action: Any, ce: str = "", who: Principal = OPS, reason: str = "why not") -> Any:
        command = RuleSite(
            command_id=CommandId(f"c-{next(NUMBERS)}"), action=action, site="A", ce=ce, reason=reason
        )
        (reply,) = await self.world.command(who, command)
        await self.look()
        return reply

    async def states(self) -> dict[str, str]:
        found = await self.world.ask(user(), ListSites(query_id="q"))
        return {each.ce: each.state for each in found.sites}

    async def canaries(self) -> list[JobId]:
        rows = await self.world.sql("select job_id from job where owner = $1 order by job_id", OWNER)
        return [row["job_id"] for row in rows]


@pytest_asyncio.fixture(loop_scope="session")
async def place(the_world: World, tmp_path: Any) -> AsyncIterator[Place]:
    for ce in ("good", "hole"):
        element = ComputingElement(site="A", ce=ce, slots=8, max_cpu_time=10**6, setup="default")
        await the_world.sql(
            "insert into ad (site, ce, element, advertised_at, expires_at)"
            " values ('A', $1, $2::text::jsonb, now(), now() + interval '1 h')",
            *(ce, msgspec.json.encode(element).decode()),
        )
    doors = CeEndpoints(LocalDispatcher(tmp_path, ["true"], {}), lambda: 0.0, local_sites=["*"])
    yield Place(the_world, HealthJudge(the_world.db, doors, TERMS))
    report = await audit(the_world.url)
    assert report.ok, report.text(brief=True)


async def test_an_element_that_eats_jobs_gets_no_more_and_the_others_go_on(place: Place) -> None:
    await place.eaten()
    assert await place.states() == {"good": "healthy", "hole": "quarantined"}
    await place.world.submitted(3)
    assert await place.run("hole", 3) == []
    assert len(await place.run("good", 3)) == 3


async def test_why_it_is_avoided_is_told_to_whoever_asks(place: Place) -> None:
    await place.eaten()
    (job_id,) = await place.world.submitted(1, grid_ces=("hole",))
    await place.world.watch()
    said = await place.world.ask(user(), WhyJob(query_id="q", job_id=job_id))
    assert said.code == "ALL_AVOIDED"
    why = "avoid: quarantined by pilot_submitter: it eats jobs: 4 of 4 attempts failed"
    assert f"A/hole: {why}" in said.summary
    told_of = next(each for each in said.elements if each.ce == "hole")
    assert told_of.limits == ()
    sites = await place.world.ask(user(), ListSites(query_id="q"))
    (notice,) = next(each for each in sites.sites if each.ce == "hole").notices
    assert notice == told_of.avoid, "whoever is asked"
    assert notice.startswith(why)
    detail = await place.world.ask(user(), ShowSite(query_id="q", site="A", ce="hole"))
    assert [(each.before, each.event, each.state) for each in detail.moves] == [
        ("healthy", "eat", "quarantined")
    ]
    facts = [msgspec.json.decode(each, type=dict) for each in place.world.take(events.TOPIC)]
    (told,) = [each for each in facts if each["type"] == "element-state"]
    assert (told["ce"], told["state"], told["said_by"]) == ("hole", "quarantined", "pilot_submitter")
    assert [each.code for each in await place.world.look()] == ["ALL_AVOIDED"]


async def test_a_canary_that_comes_back_releases_the_element(place: Place) -> None:
    await place.eaten()
    assert await place.canaries() == [], "it is left alone for a minute first"
    await place.later(60)
    await place.look()
    assert (await place.states())["hole"] == "probing"
    (canary,) = await place.canaries()
    await place.world.submitted(5)
    assert await place.run("good", 5) != [canary], "it is for the element that is tried"
    assert await place.run("hole", 5) == [canary], "and it is all that this one gets"
    await place.look()
    assert (await place.states())["hole"] == "healthy"
    await place.world.submitted(2)
    assert len(await place.run("hole", 2)) == 2
    await place.look()
    assert (await place.states())["hole"] == "healthy", "what was before is not held against it again"


async def test_a_canary_that_fails_doubles_the_pause(place: Place) -> None:
    await place.eaten()
    await place.later(60)
    await place.look()
    assert len(await place.run("hole", 1, Code.EXIT_CODE)) == 1
    await place.look()
    assert (await place.states())["hole"] == "quarantined"
    (row,) = await place.world.sql("select relapses, until - now() as pause from ce_state where ce = 'hole'")
    assert row["relapses"] == 1
    assert 100 < row["pause"].total_seconds() <= 120


async def test_a_canary_that_does_not_come_back_has_failed_and_is_killed(place: Place) -> None:
    await place.eaten()
    await place.later(60)
    await place.look()
    (canary,) = await place.canaries()
    await place.later(TERMS.probe_seconds + 1)
    await place.look()
    assert (await place.states())["hole"] == "quarantined"
    assert await place.world.state(canary) == "Killed"


async def test_one_users_broken_jobs_quarantine_nothing(place: Place) -> None:
    await place.world.submitted(20, name="broken")
    for ce in ("good", "hole"):
        assert len(await place.run(ce, 8, Code.EXIT_CODE)) == 8
    await place.look()
    assert await place.states() == {"good": "healthy", "hole": "healthy"}


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


async def test_nobody_submits_as_the_system(place: Place) -> None:
    reply = await place.world.submit(who=user(OWNER))
    assert isinstance(reply, replies.Refused)
    assert reply.code == "NOT_ALLOWED"
