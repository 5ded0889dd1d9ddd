"""Match requests: for how much work an agent asks, and what it takes."""

import msgspec

from services.job_agent.leased_jobs import LeasedJobs
from services.job_agent.match_requests import MatchRequests
from services.job_agent.offered_job import read
from services.job_agent.payload.run import Payload
from services.job_agent.payload.shepherd import now
from tests.unit.job_agent.examples import Nobody, offered, short
from wms.ids import PilotId, RequestId
from wms.messages.match_requests import MatchRequest
from wms.messages.site_inbox import NoMatch, Offer, OfferedJob
from wms.runtime.pilot_config import PilotConfig


class Asked:
    """A link that keeps what it is to send."""

    is_open = True

    def __init__(self) -> None:
        self.requests: list[MatchRequest] = []

    async def ask(self, request: MatchRequest) -> None:
        self.requests.append(request)


def asking_of(slots: int, link: object, gpus: tuple[str, ...] = ()) -> tuple[MatchRequests, LeasedJobs]:
    pilot = {"pilot_id": "p", "site": "s", "ce": "c", "vo": "v", "slots": slots}
    more = {"token_file": "t", "directory": "d"}
    config = msgspec.convert({"pilot": pilot | more, "sandboxes": {"url": "file:///s"}}, PilotConfig)
    holdings = LeasedJobs(slots, 1_000, gpus)
    node = (("gpunumber", len(gpus)),) if gpus else ()
    return MatchRequests(config, link, holdings, node), holdings  # type: ignore[arg-type]


def offer_of(*jobs: OfferedJob, request: str = "r") -> Offer:
    return Offer(pilot_id=PilotId("p"), request_id=RequestId(request), hold_seconds=9, jobs=jobs)


def test_a_pilot_takes_a_job_for_each_free_slot_and_short_ones_behind() -> None:
    asking, holdings = asking_of(2, Nobody())
    jobs = [*(offered(number) for number in range(4)), short(4, 0.2), short(5, 60.0)]
    taken, left = asking.sort(offer_of(*jobs))
    assert [each.job.job_id for each in taken] == [0, 1, 4]
    assert [each.job.job_id for each in left] == [2, 3, 5]
    for job in taken:
        holdings.take(job)
    assert asking.sort(offer_of(*jobs)) == ([], left), "what it holds is passed over"


async def test_it_offers_the_gpus_that_no_job_has_and_takes_no_more_jobs_for_them() -> None:
    link = Asked()
    asking, holdings = asking_of(4, link, gpus=("0", "1"))
    await asking.ask()
    assert link.requests[0].resource.node == (("gpunumber", 2),)
    jobs = [offered(1, gpus=1), offered(2, gpus=2), offered(3)]
    taken, left = asking.sort(offer_of(*jobs, request=link.requests[0].request_id))
    assert [each.job.job_id for each in taken] == [1, 3]
    assert [each.job.job_id for each in left] == [2]
    for job in taken:
        holdings.take(job)
    await asking.ask()
    assert link.requests[1].resource.node == (("gpunumber", 1),)


async def test_it_asks_for_work_behind_short_jobs_alone() -> None:
    link = Asked()
    asking, holdings = asking_of(2, link)
    holdings.take(read(offered(1))).payload = Payload  # type: ignore[assignment]
    await asking.ask()
    (first,) = link.requests
    assert (first.slots, first.packed, first.seconds) == (1, True, 1.0)
    (job,), _ = asking.sort(offer_of(short(2, 0.25), request=first.request_id))
    held = holdings.take(job)
    await asking.ask()
    assert len(link.requests) == 1, "the job waits to be started"
    held.payload, held.began_at = Payload, now()  # type: ignore[assignment]
    await asking.ask()
    ahead = link.requests[1]
    assert (ahead.slots, ahead.packed, ahead.resource.processors) == (1, False, 2)
    assert 0.7 < ahead.seconds <= 1.0
    asking.refused(nothing_for(ahead))
    assert not asking.refused_last, "only a request for free slots says that a pilot is idle"
    await asking.ask()
    assert len(link.requests) == 2, "it pauses"
    holdings.drop(held)
    await asking.ask()
    assert link.requests[2].packed, "but not with a free slot"


def nothing_for(request: MatchRequest) -> NoMatch:
    return NoMatch(
        pilot_id=request.pilot_id,
        request_id=request.request_id,
        code="NO_JOBS",
        reason="",
        retry_after_seconds=60,
    )


async def test_an_offer_for_a_request_that_found_nothing_is_taken_and_ends_the_pause() -> None:
    link = Asked()
    asking, holdings = asking_of(2, link)
    await asking.ask()
    (first,) = link.requests
    asking.refused(nothing_for(first))
    await asking.ask()
    assert len(link.requests) == 1, "it pauses"
    offer = Offer(pilot_id=first.pilot_id, request_id=first.request_id, hold_seconds=9, jobs=(offered(1),))
    assert asking.expects(offer)
    (job,), left = asking.sort(offer)
    assert not left
    holdings.take(job)
    await asking.ask()
    assert [each.slots for each in link.requests] == [2, 1], "it asks for the slot that is left at once"
