"""Reads the partitions of a Slurm cluster by three calls for all of them: `sinfo`, `scontrol` and `squeue`."""

import asyncio
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from services.advertiser.batch_tools import BatchTools
from services.advertiser.config import SlurmQueues
from services.advertiser.provider import SeenElement
from services.advertiser.queues import wanted
from services.advertiser.slurm_output import Load, Machines, Partition, loads, machines, partitions
from wms.glue.glue1 import GlueComputingElement, GlueHosts
from wms.glue.quantity import UNKNOWN

STATUS = {"UP": "Production", "DOWN": "Queueing", "DRAIN": "Draining", "INACTIVE": "Closed"}
"""The GLUE state of a partition, by its state in Slurm. A partition in DOWN accepts jobs and starts none.

A partition in DRAIN accepts no jobs, but starts those that wait.
"""


class Slurm:
    """The source of the partitions of one Slurm cluster, each as a computing element."""

    def __init__(self, settings: SlurmQueues) -> None:
        self._settings = settings
        # By default Slurm cuts the list of an array's tasks after 64 characters.
        configured = {"SLURM_CONF": settings.configuration} if settings.configuration else {}
        self._tools = BatchTools(settings.directory, {"SLURM_BITSTR_LEN": "0"} | configured)

    async def read(self) -> list[SeenElement]:
        """Call `sinfo`, `scontrol` and `squeue`, and return the partitions to advertise.

        Raise Unavailable or Rejected if a tool fails or its output cannot be parsed.
        """
        nodes, limits, jobs = await asyncio.gather(
            self._run("sinfo", "--json"),
            self._run("scontrol", "--oneliner", "show", "partition"),
            self._run("squeue", "--json"),
        )
        # Decoding tens of megabytes in this thread would block the event loop.
        queues = await asyncio.to_thread(self._queues, nodes, limits, jobs)
        by_name = {queue.name: load for queue, load in queues}
        seen = wanted(self._settings, [queue for queue, _ in queues], dispatcher="slurm")
        return [_with_jobs(each, by_name[each.glue.name]) for each in seen]

    def _queues(self, nodes: bytes, limits: bytes, jobs: bytes) -> list[tuple[GlueComputingElement, Load]]:
        of_partition: dict[str, list[Machines]] = {}
        for each in machines(nodes):
            of_partition.setdefault(each.partition, []).append(each)
        counted = loads(jobs, self._settings.users)
        return [
            (
                queue(
                    self._settings.site, each, of_partition.get(each.name, []), counted.get(each.name, Load())
                ),
                counted.get(each.name, Load()),
            )
            for each in partitions(limits)
        ]

    async def _run(self, name: str, *arguments: str) -> bytes:
        return (await self._tools.ask(name, *arguments)).printed


def queue(site: str, partition: Partition, nodes: Sequence[Machines], load: Load) -> GlueComputingElement:
    """Return the GLUE record of one Slurm partition. Its slots are the processors of those `nodes` that start jobs now."""
    usable = [each for each in nodes if each.usable]
    free = sum(each.idle_cpus for each in usable)
    return GlueComputingElement(
        id=f"{site}/slurm-{partition.name}",
        name=partition.name,
        site=site,
        hosting_cluster=site,
        lrms_type="slurm",
        total_cpus=sum(each.cpus for each in usable),
        status=STATUS.get(partition.state.upper(), partition.state),
        running_jobs=load.running,
        waiting_jobs=load.waiting,
        total_jobs=load.running + load.waiting,
        free_cpus=free,
        free_job_slots=free,
        max_wall_seconds=partition.max_seconds,
        hosts=_hosts(usable),
    )


def _hosts(nodes: Sequence[Machines]) -> GlueHosts:
    if not nodes:
        return GlueHosts()
    architectures = {each.architecture for each in nodes}
    return GlueHosts(
        logical_cpus=sum(each.cpus for each in nodes) or UNKNOWN,
        smp_size=min(each.cpus_each for each in nodes) or UNKNOWN,
        memory_mb=min(each.memory_mb_each for each in nodes) or UNKNOWN,
        platform_type=architectures.pop() if len(architectures) == 1 else "",
        applications=tuple(sorted(_common(nodes))),
    )


def _common(nodes: Iterable[Machines]) -> frozenset[str]:
    """Return the features that all nodes have. Others cannot be promised, since a pilot may start on any of the nodes."""
    return frozenset.intersection(*(each.features for each in nodes))


def _with_jobs(seen: SeenElement, load: Load) -> SeenElement:
    offer = replace(
        seen.offer,
        current_jobs=load.running_of_users + load.waiting_of_users,
        current_submitting_jobs=load.waiting_of_users,
    )
    return replace(seen, offer=offer)
