"""The cancellation of reservations: by whom, of which, all or none, and what the site and the broker are told."""

from typing import Any

import msgspec
import pytest

from tests.services.agreement.offered import E, grant, marked, offered, terms
from tests.services.placing import bound, brokered, placed, placements
from tests.services.world import World, user
from wms.auth.principal import Principal
from wms.db import placement
from wms.ids import AgreementId, CommandId, JobId
from wms.messages import agreements, replies
from wms.messages.commands import CancelReservations

_OFFERS: msgspec.json.Decoder[Any] = msgspec.json.Decoder(agreements.ToSite)
ANN = user()


async def reserved(world: World, *names: str) -> JobId:
    """Return a placed job with confirmed agreements of these names, of which it is to run in the first."""
    job_id = await brokered(world)
    await offered(world, *(terms(job_id, each) for each in names))
    for each in names:
        await grant(world, each)
        await marked(world, E.CONFIRM, each)
    await placed(world, job_id, agreement_id=names[0])
    return job_id


async def cancel(world: World, who: Principal, *names: str, command_id: str = "c-1") -> tuple[str, str]:
    """Cancel reservations; return the code of a refusal, or OK, and what was said."""
    order = CancelReservations(
        command_id=CommandId(command_id),
        agreements=tuple(AgreementId(each) for each in names),
        reason="too early",
    )
    (reply,) = await world.command(who, order)
    if isinstance(reply, replies.Refused):
        return reply.code, reply.message
    assert isinstance(reply, replies.Ruled)
    return "OK", reply.said


def told(world: World) -> list[Any]:
    return [_OFFERS.decode(each) for each in world.take(agreements.OFFERS_TOPIC)]


async def test_the_site_is_told_once_to_cancel(the_world: World) -> None:
    await reserved(the_world, "a-1", "a-2")
    code, said = await cancel(the_world, ANN, "a-1", "a-2")
    assert code == "OK"
    assert said.startswith("cancelled: a-1, a-2;")
    assert [(type(each), each.agreement_id, each.text) for each in told(the_world)] == [
        (agreements.Cancel, name, "ann: too early") for name in ("a-1", "a-2")
    ]
    assert (await cancel(the_world, ANN, "a-1", "a-2"))[0] == "OK"
    assert told(the_world) == [], "the same command again takes no effect"


@pytest.mark.parametrize(
    ("who", "code"),
    [
        (user("bob"), "NO_SUCH_RESERVATION"),
        (user("ann", vo="cms"), "NO_SUCH_RESERVATION"),
        (user("m", "job_monitor"), "NOT_ALLOWED"),
        (user("boss", "job_administrator"), "OK"),
        (user("oz", "operator", vo="ops"), "OK"),
    ],
)
async def test_others_may_by_their_rights(the_world: World, who: Principal, code: str) -> None:
    await reserved(the_world, "a-1")
    assert (await cancel(the_world, who, "a-1"))[0] == code
    assert len(told(the_world)) == (code == "OK")


async def test_one_that_cannot_be_cancelled_keeps_the_others(the_world: World) -> None:
    job_id = await reserved(the_world, "a-1", "a-2")
    assert (await cancel(the_world, ANN, "a-1", "none"))[0] == "NO_SUCH_RESERVATION"
    await marked(the_world, E.CANCEL, "a-2")
    assert (await cancel(the_world, ANN, "a-1", "a-2", command_id="c-2"))[0] == "RESERVATION_OVER"
    await the_world.sql("update placement set state = 'Started' where job_id = $1", job_id)
    code, text = await cancel(the_world, ANN, "a-1", command_id="c-3")
    assert (code, text) == ("RESERVATION_IN_USE", "a-1: its job runs in it")
    assert told(the_world) == []


async def test_a_job_whose_reservation_is_over_goes_back_to_the_broker(the_world: World) -> None:
    job_id = await reserved(the_world, "a-1")
    await bound(the_world, job_id)
    await the_world.sql(
        "insert into pilot (pilot_id, site, ce, vo, dispatcher, slots, job_id) values ('p-bound', 'A', 'ce', 'lhcb', 'slurm', 1, $1)",
        job_id,
    )
    async with the_world.db.transaction() as tx:
        assert await placement.doomed(tx, 10) == []
    await marked(the_world, E.CANCEL, "a-1")
    async with the_world.db.transaction() as tx:
        doomed = await placement.doomed(tx, 10)
        assert [(each.job_id, each.code) for each in doomed] == [(job_id, "RESERVATION_LOST")]
        await placement.fail(tx, doomed, "test")
    (one,) = await placements(the_world, job_id)
    assert (one.state, one.reason) == ("Failed", "RESERVATION_LOST")
    assert await the_world.state(job_id) == "Checking"
