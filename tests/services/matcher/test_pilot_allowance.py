"""A pilot's token is not enough: its row, its slots and what it has accepted say what it is given."""

import asyncpg
import msgspec
import numpy as np
import pytest

from services.matcher.matching import Matching
from services.matcher.pilot_allowance import AHEAD_PER_JOB, LEASES_PER_SLOT, AskingPilots
from tests.services.world import World, pilot, result
from wms.audit import audit
from wms.bus.consumer import Delivery
from wms.db import pilot as pilots
from wms.ids import AttemptId, PilotId, RequestId
from wms.job.reasons import Code
from wms.messages.match_requests import MatchRequest
from wms.messages.site_inbox import NoMatch, Offer
from wms.site import Resource

EXTRA = 3


class Asker:
    """One pilot that asks a matcher which knows its pilots."""

    def __init__(self, world: World, who: object = None) -> None:
        self.world = world
        self.who = pilot()
        self.now = 0.0
        self.known = AskingPilots(world.db, EXTRA, lambda: self.now)
        self.matching = Matching(
            world.index, world.gate, world.terms, 1.0, np.random.default_rng(1), pilots=self.known
        )
        self._number = 0

    async def ask(self, slots: int, pilot_id: str = "p-1") -> list[AttemptId] | str:
        """Return what is offered, or the code of the refusal."""
        self._number += 1
        await self.world.reconcile()
        resource = Resource(setup="default", vo="lhcb", cpu_time=10**6, processors=slots, memory_mb=10**5)
        request = MatchRequest(
            request_id=RequestId(f"ask-{self._number}"),
            pilot_id=PilotId(pilot_id),
            resource=resource,
            slots=slots,
        )
        who = msgspec.structs.replace(self.who, pilot_id=pilot_id)
        await self.world.db.attempt(lambda tx: self.matching.handle(tx, [Delivery(who, request)]))
        told = self.world.told()
        if isinstance(told[0], NoMatch):
            return told[0].code
        return [job.attempt_id for offer in told if isinstance(offer, Offer) for job in offer.jobs]


async def test_a_pilot_that_accepts_nothing_is_soon_given_nothing(the_world: World) -> None:
    await the_world.submitted(60)
    await the_world.add_pilot(slots=2)
    await the_world.sql("update pilot set sent_slots = 2")
    asker = Asker(the_world)
    first = await asker.ask(50)
    assert len(first) == 2 + EXTRA
    for _ in range(5):
        assert await asker.ask(50) == "OFFERS_OPEN"
        asker.now += 1
    # What it accepts makes room; what it has done makes it trusted with more.
    held = [each for each in first if isinstance(each, AttemptId)]
    await the_world.report(accept=tuple(held[:4]))
    assert len(await asker.ask(50)) == 4
    await the_world.report(start=tuple(held[:1]))
    await the_world.report(finish=(result(held[0], "done", Code.DONE),))
    assert len(await asker.ask(50)) == AHEAD_PER_JOB


async def test_a_pilot_that_works_is_never_held_up(the_world: World) -> None:
    await the_world.submitted(80)
    await the_world.add_pilot(slots=2)
    asker = Asker(the_world)
    for _ in range(30):
        offered = [each for each in await asker.ask(2) if isinstance(each, AttemptId)]
        assert len(offered) == 2
        await the_world.report(accept=tuple(offered))
        await the_world.report(start=tuple(offered))
        await the_world.report(finish=tuple(result(each) for each in offered))


async def test_a_pilot_that_accepts_and_never_begins_is_soon_given_nothing(the_world: World) -> None:
    await the_world.submitted(60)
    await the_world.add_pilot(slots=2)
    await the_world.sql("update pilot set sent_slots = 2")
    bound = 2 * LEASES_PER_SLOT + EXTRA
    has: list[AttemptId] = []
    # Nor does it help to ask one matcher after the other, or one that has just begun.
    for asker in (Asker(the_world), Asker(the_world)):
        await asker.known.refresh()
        while isinstance(offered := await asker.ask(5), list):
            await the_world.report(accept=tuple(offered))
            has += offered
        assert offered == "OFFERS_OPEN"
        assert len(has) == bound
    assert not await broken(the_world)
    asker.now += 1
    await the_world.report(start=(has[0],))
    await the_world.report(finish=(result(has[0]),))
    assert len(await asker.ask(50)) == 1 + AHEAD_PER_JOB


async def broken(world: World) -> list[str]:
    """The rules of the audit that do not hold."""
    return [check.name for check in (await audit(world.url)).checks if check.violations]


async def test_pilots_that_are_not_there_get_nothing(the_world: World) -> None:
    await the_world.submitted(3)
    asker = Asker(the_world)
    assert await asker.ask(1, "p-nobody") == "PILOT_UNKNOWN"
    await the_world.add_pilot()
    assert len(await asker.ask(1)) == 1
    await the_world.report(state="ended")
    await asker.known.refresh()
    assert await asker.ask(1) == "PILOT_UNKNOWN"
    assert asker.known.refused == 2
    assert {row["state"] for row in await the_world.sql("select state from job")} == {"Waiting"}


async def test_a_pilot_that_was_lost_from_sight_may_ask_again(the_world: World) -> None:
    await the_world.submitted(2)
    await the_world.add_pilot()
    asker = Asker(the_world)
    await the_world.sql("update pilot set ended_at = now(), state = 'Failed', cause = 'NODE_LOST'")
    assert len(await asker.ask(1)) == 1
    await asker.known.refresh()
    assert len(await asker.ask(1)) == 1


async def test_an_offer_that_did_not_commit_is_not_counted(the_world: World) -> None:
    await the_world.submitted(9)
    await the_world.add_pilot(slots=1)
    asker = Asker(the_world)
    assert len(await asker.ask(1)) == 1
    before = asker.known.room(PilotId("p-1"))
    request = MatchRequest(
        request_id=RequestId("r"), pilot_id=PilotId("p-1"),
        resource=Resource(setup="default", vo="lhcb", cpu_time=10**6, processors=1, memory_mb=10**5),
    )  # fmt: skip

    async def failing() -> None:
        async with the_world.db.transaction() as tx:
            await asker.matching.handle(tx, [Delivery(pilot(), request)])
            assert asker.known.room(PilotId("p-1")) == before - 1
            await tx.fetch("select 1 / 0")

    with pytest.raises(asyncpg.DivisionByZeroError):
        await failing()
    assert asker.known.room(PilotId("p-1")) == before


async def test_a_pilot_cannot_claim_more_slots_than_it_was_sent_with(the_world: World) -> None:
    await the_world.add_pilot(slots=2)
    await the_world.sql("update pilot set sent_slots = 2")
    await the_world.report(slots=100_000)
    assert [row["slots"] for row in await the_world.sql("select slots from pilot")] == [2]


async def test_a_silent_pilot_offers_no_free_slots(the_world: World) -> None:
    await the_world.add_pilot(slots=4)
    await the_world.report(slots=4, busy=0)

    async def silent() -> list[bool]:
        async with the_world.db.transaction() as tx:
            return [each.silent for each in await pilots.supply(tx, (), idle_silent=20, busy_silent=60)]

    assert await silent() == [False]
    await the_world.sql("update pilot set seen_at = now() - interval '30 s'")
    assert await silent() == [True]
    await the_world.sql("update pilot set busy = 1")
    assert await silent() == [False]
    await the_world.sql("update pilot set seen_at = now() - interval '90 s'")
    assert await silent() == [True]
    await the_world.report(slots=4, busy=1)
    assert await silent() == [False]
