"""Orders for private pilots: quotas, ends, and who may give them."""

import msgspec

from tests.services.private import ADMIN, ANN, BOB, EVE, Grounds
from tests.services.world import user
from wms.auth.principal import Principal
from wms.ids import CommandId
from wms.messages import replies
from wms.messages.commands import StopPilots
from wms.messages.queries import ListPilotOrders


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
    reader = msgspec.structs.replace(ANN, actions=frozenset({"see", "see_detail", "fetch_output"}))
    assert (await grounds.order(reader)).code == "NOT_ALLOWED", "the token of a user, but for reading alone"
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
