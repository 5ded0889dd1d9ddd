"""Conversion between GLUE and `wms.site`: what pilots at a published queue can offer, and the GLUE record of such an offer."""

from msgspec.structs import replace

from wms.errors import Rejected
from wms.glue.glue1 import PRODUCTION, GlueComputingElement, GlueHosts
from wms.glue.quantity import UNKNOWN, known, least
from wms.site import ComputingElement as Offer
from wms.site import distinct

TAGS_LIMIT = 1000
"""The greatest number of names in one set of a message (`wms.site.Names`)."""
TAKING = frozenset({"production", "queueing", ""})
"""The states of a queue that accepts jobs. A `queueing` queue accepts jobs, but starts none yet."""


def offered(element: GlueComputingElement, stated: Offer) -> Offer:
    """Return the offer of a queue: `stated` by the site's administrator, completed with the queue's published values.

    `stated` decides names, access, pilots' resources, and every limit. Its `slots` and `max_cpu_time` replace the published values if
    they are not 0, its VOs, platforms and memory if any are given. A queue that accepts no jobs offers no slots.

    Raise Rejected if neither gives the longest run time or the number of slots. Raise it too if access rules name users but no VO.
    """
    hosts = element.hosts
    return replace(
        stated,
        slots=_slots(element, stated),
        max_cpu_time=stated.max_cpu_time or _longest(element),
        cores=max(stated.cores, known(hosts.smp_size) or 1),
        memory_mb=stated.memory_mb or _pilot_memory(hosts, stated.cores_per_pilot),
        platforms=stated.platforms or platforms(hosts),
        vos=stated.vos or vos(element),
        tags=distinct([*stated.tags, *hosts.applications])[:TAGS_LIMIT],
        max_waiting_pilots=stated.max_waiting_pilots or known(element.max_waiting_jobs) or 0,
        current_jobs=jobs_there(element),
        current_submitting_jobs=jobs_waiting(element),
    )


def jobs_there(element: GlueComputingElement) -> int:
    """Return the number of jobs in the queue: the published total, but at least the sum of running and waiting jobs."""
    running, waiting = known(element.running_jobs) or 0, known(element.waiting_jobs) or 0
    return max(known(element.total_jobs) or 0, running + waiting)


def jobs_waiting(element: GlueComputingElement) -> int:
    """Return the number of jobs in the queue that do not run yet: the published number, else the total less the running jobs."""
    waiting, running = known(element.waiting_jobs), known(element.running_jobs)
    if waiting is not None or running is None:
        return waiting or 0
    return max(0, (known(element.total_jobs) or 0) - running)


def takes_jobs(element: GlueComputingElement) -> bool:
    """Return whether the queue accepts jobs by its published state."""
    return element.status.casefold() in TAKING


def _slots(element: GlueComputingElement, stated: Offer) -> int:
    if not takes_jobs(element):
        return 0
    told = least([element.total_cpus, element.max_running_jobs, element.hosts.logical_cpus])
    slots = stated.slots or told
    if slots is None:
        raise _unsaid(element, "how many slots it has", "slots")
    return slots


def _longest(element: GlueComputingElement) -> int:
    """Return the greatest CPU time of a job in seconds: the least of the queue's published limits.

    Raise Rejected if it publishes none.
    """
    longest = least(
        [
            element.max_cpu_seconds,
            element.max_wall_seconds,
            element.max_obtainable_cpu_seconds,
            element.max_obtainable_wall_seconds,
        ]
    )
    if longest is None:
        raise _unsaid(element, "how long jobs may run", "max_cpu_time")
    return longest


def _pilot_memory(hosts: GlueHosts, cores: int) -> int:
    """Return a pilot's share of a machine's memory in MB, in proportion to its cores; 0 if unknown."""
    memory, cpus = known(hosts.memory_mb), known(hosts.smp_size)
    return memory * min(cores, cpus) // cpus if memory and cpus else 0


def vos(element: GlueComputingElement) -> tuple[str, ...]:
    """Return the VOs that an element's access rules admit; empty only if there are no rules.

    `VO:lhcb` and `VOMS:/lhcb/Role=production` both name lhcb, since permissions within a VO are not handled here. Raise
    Rejected if there are rules, but none names a VO.
    """
    names = [name for rule in element.access_rules if (name := _vo(rule))]
    if element.access_rules and not names:
        raise _unsaid(element, "which VOs may use it, only who else", "vos")
    return distinct(names)


def _vo(rule: str) -> str:
    kind, colon, rest = rule.partition(":")
    match kind.casefold():
        case "vo" if colon:
            return rest.strip()
        case "voms" if colon:
            return rest.strip().strip("/").partition("/")[0]
        case _:
            return ""


def platforms(hosts: GlueHosts) -> tuple[str, ...]:
    """Return the platform names that jobs may require: `Linux-` and the machine type, and the same with the distribution."""
    if not hosts.platform_type:
        return ()
    plain = f"Linux-{hosts.platform_type}"
    system = "-".join(filter(None, (hosts.os_name, hosts.os_release)))
    return distinct([plain, f"{plain}-{system}" if system else ""])


def _unsaid(element: GlueComputingElement, what: str, key: str) -> Rejected:
    return Rejected(
        "GLUE_INCOMPLETE", f"{element.id} does not say {what}", f"say `{key}` in the configuration"
    )


def described(offer: Offer) -> GlueComputingElement:
    """Return the GLUE 1.x record of an offer that was not read from GLUE."""
    return GlueComputingElement(
        id=f"{offer.site}/{offer.ce}",
        name=offer.ce,
        site=offer.site,
        hosting_cluster=offer.site,
        lrms_type=offer.dispatcher,
        total_cpus=offer.slots,
        status=PRODUCTION,
        running_jobs=offer.current_jobs,
        max_cpu_seconds=offer.max_cpu_time or UNKNOWN,
        max_running_jobs=offer.max_jobs or UNKNOWN,
        access_rules=tuple(f"VO:{vo}" for vo in offer.vos),
        hosts=GlueHosts(
            smp_size=offer.cores,
            memory_mb=_machine_memory(offer) or UNKNOWN,
            platform_type=offer.platforms[0].removeprefix("Linux-") if offer.platforms else "",
            applications=offer.tags,
        ),
    )


def _machine_memory(offer: Offer) -> int:
    """Return the memory of a machine in MB, computed from a pilot's memory and cores."""
    return offer.memory_mb * offer.cores // max(1, offer.cores_per_pilot)
