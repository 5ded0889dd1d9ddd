"""`wms.match.requests`: job agents ask for work. Key: the pilot."""

from typing import Annotated

import msgspec

from wms.ids import PilotId, RequestId
from wms.site import Resource

TOPIC = "wms.match.requests"

SLOTS_LIMIT = 1_024


class MatchRequest(msgspec.Struct, frozen=True, kw_only=True, tag="match-request"):
    """Give me up to `slots` jobs that fit this resource. The same id asked again brings the same offers.

    What the token binds (pilot, site, computing element, VO) overrules what the resource says.
    """

    request_id: RequestId
    pilot_id: PilotId
    resource: Resource
    slots: Annotated[int, msgspec.Meta(ge=1, le=SLOTS_LIMIT)] = 1
    """How many jobs at most."""
    packed: bool = True
    """The jobs are to run beside each other: what each takes is taken off the resource. If not, in turn."""
    again: bool = False
    """It was sent before: what it was offered then is looked up."""


Request = MatchRequest
