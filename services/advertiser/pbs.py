"""PBS queues as computing elements, from two calls for all of them: `qstat -Q -f` and `pbsnodes -a`."""

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
    """The provider of the queues of one PBS server, Torque's or PBS Pro's."""

    def __init__(self, settings: PbsQueues) -> None:
        self._settings = settings
        server = settings.server
        configured = {"PBS_DEFAULT": server, "PBS_SERVER": server} if server else {}
        self._tools = BatchTools(settings.directory, configured)

    async def read(self) -> list[SeenElement]:
        """Return the queues to advertise, from the output of `qstat` and `pbsnodes`."""
        server = ("-s", self._settings.server) if self._settings.server else ()
        said, machines = await asyncio.gather(
            self._run("qstat", "-Q", "-f"), self._run("pbsnodes", "-a", *server)
        )
        found = await asyncio.to_thread(elements, self._settings.site, said, machines)
        return wanted(self._settings, found, dispatcher="pbs")

    async def _run(self, name: str, *arguments: str) -> str:
        return (await self._tools.ask(name, *arguments)).out


def elements(site: str, said: str, machines: str) -> list[GlueComputingElement]:
    """Return the queues in the output of `qstat -Q -f`, with the nodes in that of `pbsnodes -a`."""
    known = nodes(machines)
    return [element(site, each, nodes_of(each, known)) for each in queues(said)]


def element(site: str, queue: PbsQueue, of_queue: Sequence[PbsNode]) -> GlueComputingElement:
    """Return the GLUE record of a queue. Its slots are those of its usable nodes."""
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
