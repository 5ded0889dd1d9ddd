"""`wms.match.requests`: match requests of job agents. Key: the pilot."""

from typing import Annotated

import msgspec

from wms.ids import PilotId, RequestId
from wms.site import Resource

TOPIC = "wms.match.requests"

SLOTS_LIMIT = 1_024


class MatchRequest(msgspec.Struct, frozen=True, kw_only=True, tag="match-request"):
    """A request for up to `slots` jobs that fit this resource. A repeated request with the same id gets the same offers.

    Values bound by the token (pilot, site, computing element, VO) override the resource's fields.
    """

    request_id: RequestId
    pilot_id: PilotId
    resource: Resource
    slots: Annotated[int, msgspec.Meta(ge=1, le=SLOTS_LIMIT)] = 1
    """The most jobs to offer."""
    packed: bool = True
    """Whether the jobs are to run side by side, so that each reduces the resource; if not, they run one after the other."""
    again: bool = False
    """Whether the request was sent before, so that its former offers are looked up."""


Request = MatchRequest
