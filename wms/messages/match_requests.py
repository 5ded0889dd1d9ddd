"""The topic `wms.match.requests`: requests of job agents for jobs. Key: the pilot."""

from typing import Annotated

import msgspec

from wms.bounds import Seconds
from wms.ids import PilotId, RequestId
from wms.site import Resource

TOPIC = "wms.match.requests"

SLOTS_LIMIT = 1_024


class MatchRequest(msgspec.Struct, frozen=True, kw_only=True, tag="match-request"):
    """A pilot asks for jobs that fit its resource. A repeated request with the same id gets the same offers.

    If `packed`, the resource is what is free now: `slots` jobs start at once, and short ones follow them. Else, with `seconds`, no
    slot is free, and only short jobs are wanted. The pilot, site, computing element and VO of its token replace those of the resource.
    """

    request_id: RequestId
    pilot_id: PilotId
    resource: Resource
    slots: Annotated[int, msgspec.Meta(ge=1, le=SLOTS_LIMIT)] = 1
    """The most jobs that start at once. Without `packed` and `seconds`, as agents of earlier versions ask: the most jobs of all."""
    packed: bool = True
    """Whether the jobs run at the same time, so that each leaves less for the next. Else they run one after another."""
    again: bool = False
    """Whether the request was sent before. Then the offers made for it are looked up."""
    seconds: Seconds = 0.0
    """How many slot seconds of work are wanted beyond the jobs that start at once: jobs whose queues are known to be short."""


Request = MatchRequest
