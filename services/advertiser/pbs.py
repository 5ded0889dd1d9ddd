"""Reads the queues of a PBS server by two calls for all of them: `qstat -Q -f` and `pbsnodes -a`."""

import asyncio
from collections.abc import Sequence

from services.advertiser.batch_tools import BatchTools
from services.advertiser.config import PbsQueues
from services.advertiser.pbs_output import PbsNode, PbsQueue, nodes, nodes_of, queues
from services.advertiser.provider import SeenElement
from services.advertiser.queues import STATUS, wanted
from wms.glue.glue1 import GlueComputingElement, GlueHosts
from wms.glue.quantity import UNKNOWN


class Pbs:
    """The source of the queues of one PBS server (Torque or PBS Pro), each as a computing element."""

    def __init__(self, settings: PbsQueues) -> None:
        self._settings = settings
        server = settings.server
        configured = {"PBS_DEFAULT": server, "PBS_SERVER": server} if server else {}
        self._tools = BatchTools(settings.directory, configured)

    async def read(self) -> list[SeenElement]:
        """Call `qstat` and `pbsnodes`, and return the queues to advertise. Raise Unavailable or Rejected if a tool fails."""
        server = ("-s", self._settings.server) if self._settings.server else ()
        said, machines = await asyncio.gather(
            self._run("qstat", "-Q", "-f"), self._run("pbsnodes", "-a", *server)
        )
        found = await asyncio.to_thread(elements, self._settings.site, said, machines)
        return wanted(self._settings, found, dispatcher="pbs")

    async def _run(self, name: str, *arguments: str) -> str:
        return (await self._tools.ask(name, *arguments)).out


def elements(site: str, said: str, machines: str) -> list[GlueComputingElement]:
    """Return the GLUE record of each queue. `said` is the output of `qstat -Q -f`, `machines` that of `pbsnodes -a`.

    Raise Rejected if one of them cannot be parsed.
    """
    known = nodes(machines)
    return [element(site, each, nodes_of(each, known)) for each in queues(said)]


def element(site: str, queue: PbsQueue, of_queue: Sequence[PbsNode]) -> GlueComputingElement:
    """Return the GLUE record of one PBS queue. `of_queue` are the nodes that it uses. Only usable nodes give it slots."""
    usable = [each for each in of_queue if each.usable]
    is_full = 0 < queue.max_running <= queue.running
    free = 0 if is_full else sum(each.free for each in usable)
    return GlueComputingElement(
        id=f"{site}/pbs-{queue.name}",
        name=queue.name,
        site=site,
        hosting_cluster=site,
        lrms_type="pbs",
        total_cpus=sum(each.slots for each in usable),
        status=STATUS[queue.enabled, queue.started],
        running_jobs=queue.running,
        waiting_jobs=queue.waiting,
        total_jobs=queue.running + queue.waiting,
        free_cpus=free,
        free_job_slots=free,
        max_wall_seconds=queue.max_seconds,
        hosts=_hosts(usable),
    )


def _hosts(usable: Sequence[PbsNode]) -> GlueHosts:
    if not usable:
        return GlueHosts()
    return GlueHosts(
        logical_cpus=sum(each.slots for each in usable) or UNKNOWN,
        smp_size=min(each.slots for each in usable) or UNKNOWN,
        memory_mb=min(each.memory_mb for each in usable) or UNKNOWN,
    )
