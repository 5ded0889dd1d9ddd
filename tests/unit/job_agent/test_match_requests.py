"""Match requests: how many jobs an agent asks for."""

import msgspec

from services.job_agent.leased_jobs import LeasedJobs
from services.job_agent.match_requests import MatchRequests
from services.job_agent.prefetch import AHEAD_LIMIT, Prefetch
from tests.unit.job_agent.examples import Nobody, offered
from wms.ids import PilotId, RequestId
from wms.messages.match_requests import MatchRequest
from wms.messages.site_inbox import NoMatch, Offer
from wms.runtime.pilot_config import PilotConfig


class Asked:
    """A link that keeps what it is to send."""

    is_open = True

    def __init__(self) -> None:
        self.requests: list[MatchRequest] = []

    async def ask(self, request: MatchRequest) -> None:
        self.requests.append(request)


def asking_of(slots: int, link: object, pace: Prefetch) -> tuple[MatchRequests, LeasedJobs]:
    pilot = {"pilot_id": "p", "site": "s", "ce": "c", "vo": "v", "slots": slots}
    more = {"token_file": "t", "directory": "d"}
    config = msgspec.convert({"pilot": pilot | more, "sandboxes": {"url": "file:///s"}}, PilotConfig)
    holdings = LeasedJobs(slots, memory_mb=1_000)
    return MatchRequests(config, link, holdings, pace, ()), holdings  # type: ignore[arg-type]


def test_a_pilot_holds_no_more_than_its_slots_and_what_it_may_fetch_ahead() -> None:
    slots, pace = 2, Prefetch(0.5)
    for _ in range(10):
        pace.ended(0.0001)
    asking, holdings = asking_of(slots, Nobody(), pace)
    for request in range(5):
        jobs = tuple(offered(100 * request + number) for number in range(40))
        offer = Offer(pilot_id=PilotId("p"), request_id=RequestId(str(request)), hold_seconds=9, jobs=jobs)
        for job in asking.sort(offer)[0]:
            holdings.take(job)
    assert len(holdings) == slots + slots * AHEAD_LIMIT


async def test_an_offer_for_a_request_that_found_nothing_is_taken_and_ends_the_pause() -> None:
    link = Asked()
    asking, holdings = asking_of(2, link, Prefetch(0.0))
    await asking.ask()
    (first,) = link.requests
    nothing = NoMatch(
        pilot_id=first.pilot_id,
        request_id=first.request_id,
        code="NO_JOBS",
        reason="",
        retry_after_seconds=60,
    )
    asking.refused(nothing)
    await asking.ask()
    assert len(link.requests) == 1, "it pauses"
    offer = Offer(pilot_id=first.pilot_id, request_id=first.request_id, hold_seconds=9, jobs=(offered(1),))
    assert asking.expects(offer)
    (job,), left = asking.sort(offer)
    assert not left
    holdings.take(job)
    await asking.ask()
    assert [each.slots for each in link.requests] == [2, 1], "it asks for the slot that is left at once"
