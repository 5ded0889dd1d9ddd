"""Reads the queues of an LSF cluster by `bqueues`, called once, and `bhosts`, called for each set of hosts."""

import asyncio
from collections.abc import Sequence

from services.advertiser.batch_tools import INHERITED, BatchTools
from services.advertiser.config import LsfQueues
from services.advertiser.lsf_output import (
    HOST_FIELDS,
    QUEUE_FIELDS,
    LsfHost,
    LsfQueue,
    hosts,
    names_of,
    number,
    queues,
    without_twins,
)
from services.advertiser.provider import SeenElement
from services.advertiser.queues import STATUS, wanted
from wms.glue.glue1 import GlueComputingElement, GlueHosts
from wms.glue.quantity import UNKNOWN

_INHERITED = (*INHERITED, "LD_LIBRARY_PATH", "LSF_ENVDIR", "LSF_BINDIR", "LSF_LIBDIR", "LSF_SERVERDIR")


class Lsf:
    """The source of the queues of one LSF cluster, each as a computing element."""

    def __init__(self, settings: LsfQueues) -> None:
        self._settings = settings
        configured = {"LSF_ENVDIR": settings.configuration} if settings.configuration else {}
        self._tools = BatchTools(settings.directory, configured, _INHERITED)

    async def read(self) -> list[SeenElement]:
        """Call `bqueues` and `bhosts`, and return the queues to advertise. Raise Unavailable or Rejected if a tool fails."""
        known = queues(await self._run("bqueues", "-o", QUEUE_FIELDS, "-json", *self._settings.queues))
        named = {each.queue_name: names_of(each.hosts) for each in known}
        sets = list(dict.fromkeys(named.values()))
        printed = await asyncio.gather(
            *(self._run("bhosts", "-o", HOST_FIELDS, "-json", *(names or ())) for names in sets)
        )
        machines = {names: without_twins(hosts(each)) for names, each in zip(sets, printed, strict=True)}
        found = [element(self._settings.site, each, machines[named[each.queue_name]]) for each in known]
        return wanted(self._settings, found, dispatcher="lsf")

    async def _run(self, name: str, *arguments: str) -> bytes:
        return (await self._tools.ask(name, *arguments)).printed


def element(site: str, queue: LsfQueue, machines: Sequence[LsfHost]) -> GlueComputingElement:
    """Return the GLUE record of one LSF queue. `machines` are the hosts that it uses.

    Its slots are those of the usable hosts, but not more than the queue's own limit.
    """
    usable = [each for each in machines if each.usable]
    slots, free = sum(each.slots for each in usable), sum(each.free for each in usable)
    most = number(queue.max)
    if most:
        slots, free = min(slots, most), min(free, max(0, most - queue.taken))
    running, waiting = number(queue.run) + number(queue.susp), number(queue.pend)
    return GlueComputingElement(
        id=f"{site}/lsf-{queue.queue_name}",
        name=queue.queue_name,
        site=site,
        hosting_cluster=site,
        lrms_type="lsf",
        total_cpus=slots,
        status=STATUS[queue.is_open, queue.is_active],
        running_jobs=running,
        waiting_jobs=waiting,
        total_jobs=running + waiting,
        free_cpus=free,
        free_job_slots=free,
        max_wall_seconds=queue.max_seconds,
        hosts=_hosts(usable),
    )


def _hosts(usable: Sequence[LsfHost]) -> GlueHosts:
    if not usable:
        return GlueHosts()
    return GlueHosts(smp_size=min(each.slots for each in usable) or UNKNOWN)
