"""Turns the queues that a source has read into computing elements, with the values that the configuration states."""

from collections.abc import Iterable

import structlog
from msgspec.structs import replace

from services.advertiser.config import BatchSettings
from services.advertiser.provider import SeenElement
from wms.errors import Rejected
from wms.glue import glue1
from wms.glue.offer import offered
from wms.site import ComputingElement

log = structlog.get_logger()

SLOTS_PER_PILOT = 8

STATUS = {
    (True, True): "Production",
    (True, False): "Queueing",
    (False, True): "Draining",
    (False, False): "Closed",
}
"""The GLUE state of a queue by two facts: whether it accepts jobs, and whether it starts them."""


def wanted(
    settings: BatchSettings, queues: Iterable[glue1.GlueComputingElement], *, dispatcher: str
) -> list[SeenElement]:
    """Return the computing elements to advertise for the `queues` that were read, with the values of the configuration.

    `dispatcher` is the kind of dispatcher unless the configuration names one. A queue that is not configured, or lacks a needed
    value, is left out.
    """
    seen = []
    for queue in queues:
        if settings.queues and queue.name not in settings.queues:
            continue
        try:
            seen.append(_seen(settings, queue, dispatcher))
        except Rejected as error:
            log.warning("queue not advertised", site=settings.site, queue=queue.name, reason=str(error))
    return seen


def _seen(settings: BatchSettings, queue: glue1.GlueComputingElement, dispatcher: str) -> SeenElement:
    offer = offered(queue, stated(settings, queue, dispatcher))
    # A pilot with more slots than the queue has would never start.
    per_pilot = max(1, min(offer.slots_per_pilot, offer.slots or 1))
    offer = replace(offer, slots_per_pilot=per_pilot, cores_per_pilot=per_pilot)
    return SeenElement(offer=offer, glue=replace(queue, site=queue.site or settings.site))


def stated(settings: BatchSettings, queue: glue1.GlueComputingElement, dispatcher: str) -> ComputingElement:
    """Return the computing element of a queue with the values that the configuration states. All other fields are 0 or empty."""
    per_pilot = settings.slots_per_pilot or SLOTS_PER_PILOT
    name = queue.name or queue.id
    return ComputingElement(
        site=settings.site,
        ce=settings.names.get(name, name),
        setup=settings.setup,
        dispatcher=settings.dispatcher or dispatcher,
        slots=settings.slots,
        slots_per_pilot=per_pilot,
        cores_per_pilot=per_pilot,
        memory_mb=settings.memory_mb,
        max_cpu_time=settings.max_cpu_time,
        max_waiting_pilots=settings.max_waiting_pilots,
        max_pilots=settings.max_pilots,
        max_jobs=settings.max_jobs,
        max_submitting_jobs=settings.max_submitting_jobs,
        platforms=tuple(settings.platforms),
        disk_mb=settings.disk_mb,
        grid_middleware=settings.grid_middleware,
        submit_pools=tuple(settings.submit_pools),
        tags=tuple(settings.tags),
        required_tags=tuple(settings.required_tags),
        pilot_type=settings.pilot_type,
        vos=tuple(settings.vos),
    )
