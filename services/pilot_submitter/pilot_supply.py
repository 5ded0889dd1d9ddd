"""Counts living pilots for the planner: how many are submitted, wait, run or end, with their free slots and resources."""

from collections.abc import Sequence
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from wms.db.pilot import EqualPilots
from wms.matching.shares import VoGroup
from wms.provisioning.supply import PilotSupply
from wms.site import Resource, Told


def planned_supply(supply: EqualPilots, asked: Sequence[int], sharing: frozenset[VoGroup]) -> PilotSupply:
    """Return a group of equal living pilots (`supply`) as the planner counts them, with the resource that each offers now.

    `asked` are the CPU times in seconds that waiting jobs request, ascending. `sharing` are the groups whose private pilots run
    jobs of all their members.
    """
    running = supply.state in ("Running", "Draining")
    ending = supply.state == "Draining" or (running and supply.lasts == 0 and bool(asked))
    free = max(0, supply.slots - supply.busy)
    return PilotSupply(
        site=supply.site,
        ce=supply.ce,
        vo=supply.vo,
        submitted=supply.pilots if supply.state in ("Submitting", "Submitted") else 0,
        waiting=supply.pilots if supply.state == "Waiting" else 0,
        running=supply.pilots if running else 0,
        ending=supply.pilots if ending else 0,
        # A silent pilot takes no job; it counts again once it reports.
        idle_slots=supply.pilots * free if running and not ending and not supply.silent else 0,
        resource=_shared(_offered(supply, asked, free) if running else _sent(supply.resource), sharing),
        asks=supply.asks,
    )


def _shared(resource: Resource | None, sharing: frozenset[VoGroup]) -> Resource | None:
    """Return a pilot's resource; for a private pilot, with the present setting of its group on sharing pilots among members.

    `sharing` are the groups that share. None stays None.
    """
    if resource is None or resource.generic:
        return resource
    return replace(resource, job_sharing=(resource.vo, resource.owner_group) in sharing)


def _offered(supply: EqualPilots, asked: Sequence[int], free: int) -> Resource | None:
    """Return the resource that each of these running pilots has left, with `free` slots; None if what they were sent with is unknown.

    Its CPU time is the longest in `asked` (CPU times that waiting jobs request) that still fits.
    """
    whole = _sent(supply.resource)
    if whole is None:
        return None
    memory = whole.memory_mb if supply.free_memory_mb is None else supply.free_memory_mb
    lasts = whole.cpu_time if supply.lasts == len(asked) else asked[supply.lasts - 1] if supply.lasts else 0
    return replace(
        whole,
        cpu_time=min(whole.cpu_time, lasts),
        processors=free,
        memory_mb=memory,
        node=_node(supply.idle_node),
    )


@lru_cache(maxsize=4_096)
def _node(attributes: str) -> Told:
    """Return the attributes of nodes, given as JSON; none if that is empty."""
    return msgspec.json.decode(attributes, type=Told) if attributes else ()


@lru_cache(maxsize=4_096)
def _sent(resource: str) -> Resource | None:
    """Return the resource, given as JSON, that was stored with pilots when they were sent; None if empty or out of bounds."""
    try:
        return msgspec.json.decode(resource, type=Resource) if resource else None
    except msgspec.DecodeError:
        return None  # stored before its values had bounds
