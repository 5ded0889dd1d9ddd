"""The pilot that is sent for a placement (a job that the resource broker assigned to an element): what it requests of the element.

Such a pilot may run that job only.
"""

import math

from msgspec.structs import replace

from services.pilot_submitter.ce_endpoints import CeEndpoint
from wms.broker.start_window import StartWindow, start_window
from wms.db.pilot import NewPilot
from wms.db.placement import PlacedWork, Placement
from wms.dispatch.port import Request
from wms.dispatch.reservation import LATE_SECONDS, SETTING_UP_SECONDS, reservation_option
from wms.ids import PilotId
from wms.matching.binding import restrained
from wms.matching.clauses import takes_private_alone
from wms.matching.grouping import Requirements, processors_needed, wants_whole_node
from wms.provisioning.purpose import Purpose
from wms.site import ComputingElement, PilotOwner, Resource, as_it_is, private, without_ad


def slots_of(required: Requirements, element: ComputingElement) -> int:
    """Return the number of slots (for one processor each) of the pilot for a job with these requirements at an element.

    It is the number of processors that the job needs. A job that wants a whole node gets all slots of a pilot there.
    """
    return element.slots_per_pilot if wants_whole_node(required) else processors_needed(required)


def bound_pilot(
    pilot_id: PilotId, placed: Placement, work: PlacedWork, element: ComputingElement, lifetime: float
) -> NewPilot:
    """Return the database row of a placement's pilot, to be stored before the pilot is sent. `work` is the placed job.

    The pilot is bound to the job's owner too (private) if the job takes private pilots alone. `lifetime` is the number of
    seconds after its start at which it takes no job any more.
    """
    required = work.requirements
    owner = PilotOwner(required.owner_group, required.owner) if takes_private_alone(required) else None
    return NewPilot(
        pilot_id=pilot_id,
        site=element.site,
        ce=element.ce,
        vo=required.vo,
        dispatcher=element.dispatcher,
        slots=slots_of(required, element),
        reason=f"placement {placed.attempt} of job {placed.job_id}",
        lifetime_seconds=lifetime,
        owner_group=owner.owner_group if owner else "",
        owner=owner.owner if owner else "",
        job_id=placed.job_id,
        resource=_offered(placed, required, element, owner),
    )


def _offered(
    placed: Placement, required: Requirements, element: ComputingElement, owner: PilotOwner | None
) -> Resource:
    offers = restrained(element.pilot_resource(vo=required.vo), placed.job_id)
    if owner:
        offers = private(offers, owner, job_sharing=False)
    return without_ad(as_it_is(offers, ()))


def request_of(
    placed: Placement, work: PlacedWork, element: ComputingElement, endpoint: CeEndpoint
) -> Request:
    """Return what the pilot of a placement requests of the batch system: processors, memory, wall time and its reservation.

    `endpoint` is where `element` is reached. The wall time is that of the placement or reservation, if it has one.
    Otherwise it is the job's, or what is usual at the endpoint.
    """
    usual, slots = endpoint.request(element), slots_of(work.requirements, element)
    share = usual.memory_mb * slots // max(1, element.slots_per_pilot)
    return replace(
        usual,
        cores=max(1, usual.cores * slots // max(1, element.slots_per_pilot), slots),
        memory_mb=max(share, work.requirements.min_ram_mb)
        if usual.memory_mb
        else work.requirements.min_ram_mb,
        walltime_seconds=_walltime(placed, work, usual.walltime_seconds),
        attributes={**usual.attributes, **reservation_option(endpoint.terms.kind, placed.reservation)},
    )


def _walltime(placed: Placement, work: PlacedWork, usual: int) -> int:
    reserved = None if work.reserved_seconds is None else work.reserved_seconds - LATE_SECONDS
    most = placed.walltime_seconds or reserved
    if most is not None:
        # Whole minutes are what some batch systems count in, and they must not be more than what is reserved. The broker reserves
        # so much that the job's own time fits into them.
        return max(60, math.floor(most / 60) * 60)
    wanted = work.description.wall_time
    if wanted is None:
        return usual
    return min(usual or wanted + SETTING_UP_SECONDS, wanted + SETTING_UP_SECONDS)


def window_of(work: PlacedWork) -> StartWindow | None:
    """Return when the program of a placed job may start; None if its user does not say."""
    wishes = work.description.preferences
    return start_window(wishes, work.submitted_at) if wishes and work.submitted_at else None


def purpose_of(required: Requirements) -> Purpose:
    """Return what a batch system is told of the work of a pilot that runs one job with these requirements."""
    return Purpose().with_work(required, (required.owner_group,))
