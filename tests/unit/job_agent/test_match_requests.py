"""Match requests: how many jobs an agent asks for."""

import msgspec

from services.job_agent.leased_jobs import LeasedJobs
from services.job_agent.match_requests import MatchRequests
from services.job_agent.node import NodeJudge
from services.job_agent.prefetch import AHEAD_LIMIT, Prefetch
from tests.unit.job_agent.examples import Nobody, offered
from wms.ids import PilotId, RequestId
from wms.messages.site_inbox import Offer
from wms.runtime.pilot_config import PilotConfig


def test_a_pilot_holds_no_more_than_its_slots_and_what_it_may_fetch_ahead() -> None:
    slots, pace = 2, Prefetch(0.5)
    for _ in range(10):
        pace.ended(0.0001)
    pilot = {"pilot_id": "p", "site": "s", "ce": "c", "vo": "v", "slots": slots}
    more = {"token_file": "t", "directory": "d"}
    config = msgspec.convert({"pilot": pilot | more, "sandboxes": {"url": "file:///s"}}, PilotConfig)
    holdings = LeasedJobs(slots, memory_mb=1_000)
    asking = MatchRequests(config, Nobody(), holdings, pace, NodeJudge(config, {}))  # type: ignore[arg-type]
    for request in range(5):
        jobs = tuple(offered(100 * request + number) for number in range(40))
        offer = Offer(pilot_id=PilotId("p"), request_id=RequestId(str(request)), hold_seconds=9, jobs=jobs)
        for job in asking.sort(offer)[0]:
            holdings.take(job)
    assert len(holdings) == slots + slots * AHEAD_LIMIT
