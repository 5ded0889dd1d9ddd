"""A request is its pilot's by the token, and so is what the resource says of site, VO and owner."""

import msgspec

from services.matcher.verified_request import bind, may_ask
from wms.auth.principal import Principal
from wms.ids import JobId, PilotId, RequestId
from wms.messages.match_requests import MatchRequest
from wms.site import Resource

PILOT = Principal(
    kind="pilot", owner="sender", group="pilot", vo="lhcb", pilot_id="p-1", site="A", ce="ce",
    token_id="t", expires_at=4e9,
)  # fmt: skip
RESOURCE = Resource(setup="default", vo="other", site="B", grid_ce="elsewhere", owner="eve", cpu_time=60)


def asked(pilot_id: str) -> MatchRequest:
    return MatchRequest(
        request_id=RequestId("r"), pilot_id=PilotId(pilot_id), resource=RESOURCE, slots=1, packed=True
    )


def test_a_pilot_asks_for_itself_alone() -> None:
    assert may_ask(PILOT, asked("p-1"))
    assert not may_ask(PILOT, asked("p-2"))
    assert not may_ask(None, asked("p-1"))
    assert not may_ask(msgspec.structs.replace(PILOT, kind="user"), asked("p-1"))


def test_the_token_overrules_what_the_body_says() -> None:
    bound = bind(PILOT, RESOURCE)
    assert (bound.vo, bound.site, bound.grid_ce, bound.owner) == ("lhcb", "A", "ce", "sender")
    assert bound.cpu_time == RESOURCE.cpu_time


def test_a_pilot_that_is_bound_to_a_job_is_bound_to_no_other() -> None:
    one, other = (bind(msgspec.structs.replace(PILOT, job_id=JobId(n)), RESOURCE) for n in (7, 8))
    assert one != other
    assert bind(PILOT, RESOURCE) not in (one, other)
