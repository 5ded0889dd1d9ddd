"""Match requests as tokens allow them: who may ask, and for which resource."""

import msgspec

from wms.auth.principal import Principal
from wms.ids import PilotId, RequestId
from wms.matching.binding import restrained
from wms.messages.requests import MatchRequest
from wms.site import Resource


class VerifiedRequest(msgspec.Struct, frozen=True, gc=False):
    """A request with the identity of its token, whatever its body says."""

    request_id: RequestId
    pilot_id: PilotId
    resource: Resource
    slots: int
    packed: bool
    again: bool


def may_ask(principal: Principal | None, request: MatchRequest) -> bool:
    """Tell whether the token is of the request's pilot."""
    return principal is not None and principal.kind == "pilot" and principal.pilot_id == request.pilot_id


def bind(principal: Principal, resource: Resource, *, job_sharing: bool = False) -> Resource:
    """Return the resource as the pilot's token allows it; `job_sharing`: the token's group shares its jobs.

    A pilot that is bound to a job by its token is given that job, and any other pilot never.
    """
    return msgspec.structs.replace(
        restrained(resource, principal.job_id),
        vo=principal.vo,
        site=principal.site or "",
        grid_ce=principal.ce or "",
        generic="generic_pilot" in principal.rights,
        owner=principal.owner,
        owner_group=principal.group,
        job_sharing=job_sharing,
    )
