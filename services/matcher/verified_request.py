"""Match requests as verified by tokens: which pilot may ask, and for which resource."""

import msgspec

from wms.auth.principal import Principal
from wms.ids import PilotId, RequestId
from wms.matching.binding import restrained
from wms.messages.match_requests import SLOTS_LIMIT, MatchRequest
from wms.site import Resource


class VerifiedRequest(msgspec.Struct, frozen=True, gc=False):
    """A match request whose resource has the identity, site and rights of the pilot's token, whatever the message says."""

    request_id: RequestId
    pilot_id: PilotId
    resource: Resource
    slots: int
    packed: bool
    again: bool
    seconds: float = 0.0
    """How many slot seconds of short jobs are wanted beyond the jobs that start at once."""
    most: int = SLOTS_LIMIT
    """The most jobs of all that the pilot may be offered."""

    @property
    def asks_ahead(self) -> bool:
        """Whether no slot of the pilot is free, so that it is given short jobs only."""
        return self.seconds > 0 and not self.packed


def may_ask(principal: Principal | None, request: MatchRequest) -> bool:
    """Return whether a token is that of the pilot that a request names; False without a token (`principal` None)."""
    return principal is not None and principal.kind == "pilot" and principal.pilot_id == request.pilot_id


def bind(principal: Principal, resource: Resource, *, job_sharing: bool = False) -> Resource:
    """Return the described resource with owner, group, VO, site and rights replaced by those of the pilot's token.

    `job_sharing` says that the members of the token's group share their jobs. A pilot whose token names a job can be given this job only, and no
    other pilot can be given it.
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
