"""Private pilots: ordered by users and groups, bound by their tokens alone, given their owners' jobs and nobody else's."""

from pathlib import Path
from typing import Any

import pytest

from services.pilot_submitter.provisioning import Provisioning
from tests.services.job_manager.queries.test_why import why
from tests.services.pilot_submitter.test_ce_endpoints import STAYS, Site
from tests.services.world import World, ids, user
from wms.auth.principal import Principal, Right
from wms.auth.token import Verifier
from wms.dispatch.local import LocalDispatcher
from wms.dispatch.port import PilotRequest, PilotSighting
from wms.ids import AttemptId, CommandId
from wms.messages import replies
from wms.messages.commands import SetShare, StartPilots, StopPilots
from wms.messages.queries import ListPilotOrders
from wms.runtime import clock

ANN, BOB, EVE = user("ann"), user("bob"), user("eve", group="top")
ADMIN = user("ada", "job_administrator", group="bosses")


class Recording(LocalDispatcher):
    """Stands for a middleware: it takes orders, starts nothing, and keeps what each pilot was sent with."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.orders: list[PilotRequest] = []

    async def send(self, orders: Any) -> list[PilotSighting]:
        self.orders += orders
        return [PilotSighting(pilot_id=each.pilot_id, state="Submitted", reference="x") for each in orders]


class Grounds:
    """A site of a few slots, a pilot submitter that sends there, and the tokens of the pilots that it sent."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.world = site.world
        dispatcher = site.dispatcher(Recording, "first", STAYS)
        assert isinstance(dispatcher, Recording)
        self.dispatcher = dispatcher
        self.provisioning: Provisioning = site.build(first=dispatcher)[0]
        self._commands = 0

    async def advertise(self, slots: int = 4) -> None:
        await self.site.advertise("first")
        await self.world.sql(
            "update ad set element = jsonb_set(element, '{slots}', to_jsonb($1::int))", slots
        )

    async def order(self, who: Principal, **said: Any) -> Any:
        self._commands += 1
        (reply,) = await self.world.command(
            who, StartPilots(command_id=CommandId(f"start-{self._commands}"), **said)
        )
        return reply

    async def share(self, **said: Any) -> None:
        self._commands += 1
        setting = SetShare(
            command_id=CommandId(f"share-{self._commands}"), vo="lhcb", owner_group="physics", **said
        )
        (reply,) = await self.world.command(ADMIN, setting)
        assert isinstance(reply, replies.Ruled), reply
        await self.world.rules.refresh()

    async def sent(self) -> list[Principal]:
        """Plan once; return who the pilots are that were sent, as their tokens say."""
        self.dispatcher.orders.clear()
        self.provisioning._not_before = 0.0
        await self.provisioning.provide()
        verifier = Verifier.from_file(self.site.place / "keys" / "jwks.json")
        tokens = [each.token.split()[0] for each in self.dispatcher.orders]
        return [verifier.verify(each, clock.timestamp()) for each in tokens]

    async def matched(self, pilot: Principal, slots: int = 8) -> list[AttemptId]:
        return await self.world.match(pilot, slots)


@pytest.fixture
async def grounds(the_world: World, tmp_path: Path) -> Grounds:
    found = Grounds(Site(the_world, tmp_path))
    await found.advertise()
    return found


async def test_an_owners_pilot_takes_the_owners_jobs_alone_until_the_group_shares_them(
    grounds: Grounds,
) -> None:
    assert "order 1: 1 private pilot" in (await grounds.order(ANN)).said
    (pilot,) = await grounds.sent()
    assert (pilot.owner, pilot.group, pilot.vo) == ("ann", "physics", "lhcb")
    assert Right.GENERIC_PILOT not in pilot.rights
    mine = (await grounds.world.submit({}, {"pilot_types": ["private"]}, who=ANN)).ids
    theirs = (await grounds.world.submit({}, who=BOB)).ids
    await grounds.world.submit({}, who=EVE)
    assert sorted(ids(await grounds.matched(pilot))) == [n for a, b in mine for n in range(a, b + 1)]
    await grounds.share(job_sharing=True)
    assert ids(await grounds.matched(pilot)) == [theirs[0][0]], "of the group's jobs the other's, too"


async def test_a_job_for_private_pilots_runs_on_no_generic_one_and_says_what_would_do(
    grounds: Grounds,
) -> None:
    job_id = (await grounds.world.submit({"pilot_types": ["private"]}, who=ANN)).ids[0][0]
    assert await grounds.matched(await grounds.world.add_pilot()) == []
    assert await grounds.sent() == [], "nobody wants private ones to be sent"
    told = await why(grounds.world, job_id, ANN)
    assert (told.code, "wms pilot start" in told.advice) == ("NO_PRIVATE_PILOT", True)
    (said,) = await grounds.world.look()
    assert (said.code, "ann@physics" in said.text) == ("NO_PRIVATE_PILOT", True)
    await grounds.order(ANN)
    await grounds.sent()
    assert (await why(grounds.world, job_id, ANN)).code == "NO_PILOT"


async def test_a_group_that_wants_its_own_is_sent_private_pilots_and_its_jobs_run_on_others_too(
    grounds: Grounds,
) -> None:
    await grounds.share(private_pilots=True)
    await grounds.world.submit({}, who=ANN)
    await grounds.world.submit({}, who=EVE)
    sent = {(each.owner, each.group): each for each in await grounds.sent()}
    assert sent.keys() == {("ann", "physics"), ("pilot_submitter", "pilot")}
    generic = sent["pilot_submitter", "pilot"]
    assert Right.GENERIC_PILOT in generic.rights
    assert len(await grounds.matched(generic)) == 2
    await grounds.world.submit({}, who=BOB)
    assert [(each.owner, each.group) for each in await grounds.sent()] == [], "the generic one is on its way"


async def test_a_whole_groups_pilots_are_ordered_where_it_shares_its_jobs(grounds: Grounds) -> None:
    refused = await grounds.order(ANN, group_wide=True)
    assert (refused.code, "does not share" in refused.message) == ("NOT_SHARED", True)
    await grounds.share(job_sharing=True)
    await grounds.order(ANN, group_wide=True)
    (pilot,) = await grounds.sent()
    assert (pilot.group, pilot.rights) == ("physics", frozenset())
    (job_id,) = await grounds.world.submitted()
    theirs = (await grounds.world.submit({}, who=BOB)).ids[0][0]
    assert sorted(ids(await grounds.matched(pilot))) == sorted([job_id, theirs])
    await grounds.share(job_sharing=False)
    await grounds.world.submit({}, who=BOB)
    assert await grounds.matched(pilot) == []


async def test_orders_keep_to_quotas_caps_and_elements_and_end(grounds: Grounds) -> None:
    for wrong, code in (
        ({"ce": "first"}, "NO_SITE"),
        ({"site": "Nowhere"}, "NO_AD"),
        ({"site": "A", "ce": "second"}, "NO_AD"),
    ):
        assert (await grounds.order(ANN, **wrong)).code == code
    await grounds.world.sql(
        """update ad set received_at = now(), element = jsonb_set(element, '{vos}', '["cms"]')"""
    )
    assert (await grounds.order(ANN, site="A")).code == "NOT_FOR_VO"
    await grounds.world.sql("update ad set received_at = now(), element = jsonb_set(element, '{vos}', '[]')")
    await grounds.order(ANN, count=100, within_seconds=600)
    assert (await grounds.order(ANN)).code == "TOO_MANY_PILOTS"
    await grounds.order(BOB, count=2)
    owners = [each.owner for each in await grounds.sent()]
    assert sorted(owners) == ["ann", "ann", "bob", "bob"], "half of the cap of eight, in turns"
    assert await grounds.sent() == []
    (order,) = (await grounds.world.ask(ANN, ListPilotOrders(query_id="q"))).orders
    assert (order.wanted, order.sent, order.state) == (100, 2, "open")
    assert "cap on pilots" in order.held
    await grounds.world.sql("update pilot_order set expires_at = now() where owner = 'ann'")
    assert await grounds.sent() == []
    (order,) = (await grounds.world.ask(ANN, ListPilotOrders(query_id="q"))).orders
    assert order.state == "expired"


async def test_who_may_order_see_and_withdraw(grounds: Grounds) -> None:
    refused = await grounds.order(
        Principal(kind="service", owner="s", group="", vo="", token_id="t", expires_at=4e9)
    )
    assert refused.code == "NOT_ALLOWED"
    await grounds.order(ANN)

    async def seen(who: Principal) -> int:
        return len((await grounds.world.ask(who, ListPilotOrders(query_id="q"))).orders)

    async def stopped(who: Principal, command_id: str) -> str:
        (reply,) = await grounds.world.command(who, StopPilots(command_id=CommandId(command_id), orders=(1,)))
        return reply.code if isinstance(reply, replies.Refused) else "OK"

    others = {"bob": BOB, "eve": EVE, "monitor": user("m", "job_monitor"), "cms": user("ann", vo="cms")}
    for name, who in others.items():
        assert (await seen(who), await stopped(who, name)) == (0, "NO_SUCH_ORDER"), name
    assert (await seen(user("x", "job_sharing")), "a token's word is none") == (0, "a token's word is none")
    assert [await seen(who) for who in (ANN, ADMIN, user("oz", "operator", vo="ops"))] == [1, 1, 1]
    await grounds.share(job_sharing=True)
    assert (await seen(BOB), await seen(EVE)) == (1, 0)
    assert await stopped(BOB, "shared") == "OK"
    assert await stopped(ANN, "again") == "NO_SUCH_ORDER"
    assert await grounds.sent() == []
