"""Describes this machine as computing elements: its resources, its load, and its jobs as counted by processes."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from services.advertiser.config import LocalElement
from services.advertiser.processes import LocalJobCounts, jobs_of
from services.advertiser.provider import SeenElement
from services.advertiser.queues import SLOTS_PER_PILOT
from wms.glue.glue1 import GlueComputingElement as Glue
from wms.glue.offer import described
from wms.runtime.machine import Machine, free_disk_mb, two_digits
from wms.site import ComputingElement


class Local:
    """The source of the computing elements that are this machine.

    `look` measures the machine. `processes` returns the environments of its processes, from which its jobs are counted.
    """

    def __init__(
        self,
        elements: Sequence[LocalElement],
        *,
        look: Callable[[], Machine],
        processes: Callable[[], Sequence[Mapping[str, str]]],
    ) -> None:
        self._elements = elements
        self._look = look
        self._processes = processes

    async def read(self) -> list[SeenElement]:
        """Measure the machine and return its computing elements, each with its present number of jobs."""
        machine = self._look()
        counts = any(each.count_jobs for each in self._elements)
        # With hundreds of processes this takes tens of milliseconds.
        processes = await asyncio.to_thread(self._processes) if counts else ()
        return [
            _seen(
                element(each, machine),
                jobs_of(processes, f"{each.site}/{each.ce}") if each.count_jobs else LocalJobCounts(),
            )
            for each in self._elements
        ]


def element(settings: LocalElement, machine: Machine) -> ComputingElement:
    """Return the description of one computing element of this machine. Values that `settings` leaves out are those of `machine`."""
    slots = settings.slots or machine.cores
    per_pilot = min(settings.slots_per_pilot or SLOTS_PER_PILOT, slots)
    memory = settings.memory_mb or machine.memory_mb
    return ComputingElement(
        site=settings.site,
        ce=settings.ce,
        setup=settings.setup,
        dispatcher="local",
        slots=slots,
        slots_per_pilot=per_pilot,
        cores=machine.cores,
        cores_per_pilot=per_pilot,
        memory_mb=memory * per_pilot // slots,
        max_cpu_time=settings.max_cpu_time,
        max_waiting_pilots=settings.max_waiting_pilots,
        max_pilots=settings.max_pilots,
        max_jobs=settings.max_jobs,
        max_submitting_jobs=settings.max_submitting_jobs,
        platforms=tuple(settings.platforms) or machine.platforms,
        disk_mb=settings.disk_mb
        or (two_digits(free_disk_mb(settings.directory)) if settings.directory else 0),
        grid_middleware=settings.grid_middleware,
        submit_pools=tuple(settings.submit_pools),
        tags=tuple(settings.tags),
        required_tags=tuple(settings.required_tags),
        pilot_type=settings.pilot_type,
        vos=tuple(settings.vos),
        load=machine.load,
    )


def _seen(offer: ComputingElement, jobs: LocalJobCounts) -> SeenElement:
    there = jobs.running + jobs.submitting
    offer = replace(offer, current_jobs=there, current_submitting_jobs=jobs.submitting)
    glue: Glue = replace(
        described(offer),
        lrms_type="fork",
        running_jobs=jobs.running,
        waiting_jobs=jobs.submitting,
        total_jobs=there,
    )
    return SeenElement(offer=offer, glue=glue)
