"""Jobs that come are offered to idle pilots under their last requests: no more than was asked, once, and for a while."""

from typing import Any

import msgspec
import numpy as np
import pytest

from services.matcher import standing_requests
from services.matcher.matching import Matching
from services.matcher.pilot_allowance import AskingPilots
from services.matcher.standing_requests import StandingRequests
from services.matcher.verified_request import VerifiedRequest
from tests.services.world import World, pilot
from wms.bus.consumer import Delivery
from wms.db.database import Transaction
from wms.ids import PilotId, RequestId
from wms.messages.match_requests import MatchRequest
from wms.messages.site_inbox import NoMatch, Offer
from wms.site import Resource

RETRY_SECONDS = 1.0


class IdlePilots:
    """Pilots that ask one matcher, at times that the test sets."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.now = 100.0
        self.known = AskingPilots(world.db, 3, lambda: self.now)
        self.matching = Matching(
            world.index, world.gate, world.terms, RETRY_SECONDS, np.random.default_rng(1),
            pilots=self.known, clock=lambda: self.now,
        )  # fmt: skip

    async def ask(self, request_id: str, slots: int = 2, pilot_id: str = "p-1") -> list[Any]:
        """Ask for jobs; return what the pilot is told."""
        who = msgspec.structs.replace(pilot(), pilot_id=pilot_id)
        resource = Resource(setup="default", vo="lhcb", cpu_time=10**6, processors=slots, memory_mb=10**5)
        request = MatchRequest(
            request_id=RequestId(request_id), pilot_id=PilotId(pilot_id), resource=resource, slots=slots
        )
        await self.world.db.attempt(lambda tx: self.matching.handle(tx, [Delivery(who, request)]))
        return self.world.told()

    async def jobs_come(self, count: int, **description: Any) -> list[Offer]:
        """Submit jobs; return the offers that pilots get without asking again."""
        await self.world.submitted(count, **description)
        await self.world.reconcile()
        return await self.offered()

    async def offered(self) -> list[Offer]:
        await self.matching.standing.offer(self.world.db, self.matching.offer_to_idle)
        told = self.world.told()
        assert all(isinstance(each, Offer) for each in told)
        return told


@pytest.fixture
async def idle(the_world: World) -> IdlePilots:
    for name in ("p-1", "p-2"):
        await the_world.add_pilot(msgspec.structs.replace(pilot(), pilot_id=name))
    return IdlePilots(the_world)


async def test_jobs_that_come_are_offered_under_the_last_request_and_no_more_than_it_asked_for(
    idle: IdlePilots,
) -> None:
    assert [type(each) for each in await idle.ask("r-1", slots=2)] == [NoMatch]
    (offer,) = await idle.jobs_come(5)
    assert (offer.pilot_id, offer.request_id, len(offer.jobs)) == ("p-1", "r-1", 2)
    assert await idle.offered() == [], "a request is answered with jobs once"


async def test_a_request_stands_until_its_pilot_asks_again_by_itself(idle: IdlePilots) -> None:
    await idle.ask("r-1")
    idle.now += RETRY_SECONDS
    assert await idle.jobs_come(1) == []


async def test_only_the_last_request_of_a_pilot_stands(idle: IdlePilots) -> None:
    await idle.ask("r-1")
    await idle.ask("r-2")
    (offer,) = await idle.jobs_come(5)
    assert (offer.request_id, len(offer.jobs)) == ("r-2", 2)


async def test_a_request_that_found_jobs_does_not_stand(idle: IdlePilots) -> None:
    await idle.ask("r-1")
    await idle.world.submitted(1)
    await idle.world.reconcile()
    (offer,) = await idle.ask("r-2")
    assert isinstance(offer, Offer)
    assert await idle.jobs_come(4) == []


async def test_jobs_that_fit_no_idle_pilot_leave_the_requests_standing(idle: IdlePilots) -> None:
    await idle.ask("r-1")
    assert await idle.jobs_come(2, sites=["B"]) == []
    assert len(await idle.jobs_come(1)) == 1


async def test_few_jobs_leave_the_requests_of_other_pilots_standing(idle: IdlePilots) -> None:
    await idle.ask("r-1", slots=1)
    await idle.ask("r-2", slots=1, pilot_id="p-2")
    assert [each.request_id for each in await idle.jobs_come(1)] == ["r-1"]
    assert [each.request_id for each in await idle.jobs_come(1)] == ["r-2"]


async def test_a_pilot_that_has_ended_meanwhile_is_offered_nothing(idle: IdlePilots) -> None:
    await idle.ask("r-1")
    await idle.world.sql("update pilot set ended_at = now(), state = 'Done' where pilot_id = 'p-1'")
    await idle.known.refresh()
    assert await idle.jobs_come(1) == []


async def test_offers_under_standing_requests_are_bounded_by_the_allowance_of_the_pilot(
    idle: IdlePilots,
) -> None:
    """A pilot of eight slots may have eleven offers; asking again and again brings no more."""
    offered = 0
    for number in range(10):
        await idle.ask(f"r-{number}")
        offered += sum(len(each.jobs) for each in await idle.jobs_come(2))
    assert offered == 8 + 3


# --- the book of requests by itself ---------------------------------------------------------------


def verified(number: int) -> VerifiedRequest:
    resource = Resource(setup="default", vo="v", cpu_time=1)
    pilot_id, request_id = PilotId(f"p-{number}"), RequestId(f"r-{number}")
    return VerifiedRequest(request_id, pilot_id, resource, 1, packed=True, again=False)


async def test_a_round_that_fails_loses_no_request(the_world: World) -> None:
    standing = StandingRequests(1.0, lambda: 0.0)
    standing.keep([verified(1), verified(2)])

    async def fails(_: Transaction, __: object) -> set[RequestId]:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await standing.offer(the_world.db, fails)
    assert len(standing) == 2


async def test_a_pilot_that_asks_anew_during_a_round_has_no_old_request(the_world: World) -> None:
    standing = StandingRequests(1.0, lambda: 0.0)
    standing.keep([verified(1), verified(2)])

    async def meanwhile(_: Transaction, __: object) -> set[RequestId]:
        standing.forget([PilotId("p-1")])
        return set()

    await standing.offer(the_world.db, meanwhile)
    assert len(standing) == 1


def test_no_more_requests_stand_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing_requests, "REQUESTS_LIMIT", 3)
    standing = StandingRequests(1.0, lambda: 0.0)
    standing.keep(map(verified, range(10)))
    assert len(standing) == 3
