"""What the payloads of one agent share: their directories, the sandbox store, the shepherd, and how they are isolated and measured."""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from random import SystemRandom
from types import MappingProxyType
from typing import Self

import structlog

from services.job_agent.gateway_store import AttemptStores
from services.job_agent.payload.delegation import Delegation
from services.job_agent.payload.gateway_access import PayloadGateway
from services.job_agent.payload.image_runtime import ImageRuntime
from services.job_agent.payload.isolation import PayloadIsolation, payload_owner
from services.job_agent.payload.limit_enforcement import GRACE_MOST_SECONDS, PayloadLimits, kernel_limits
from services.job_agent.payload.output_upload import KEEPERS
from services.job_agent.payload.process_control import Processes
from services.job_agent.payload.spare_workdirs import SpareWorkdirs
from services.job_agent.payload.start_window import PayloadStartWindow
from services.job_agent.payload.usage_sampling import UsageSampler
from services.job_agent.payload.workdir import SCRATCH, WORK
from services.job_agent.threads import Threads
from wms.ids import AttemptId, PilotId, SiteName
from wms.transfer.movers import TransferSettings
from wms.transfer.stage_in import TransferSite

log = structlog.get_logger()

NAMESPACES, NOT_ISOLATED = "namespaces", "none"
ACCOUNT = "account"
"""The word that is reported for namespaces in which payloads run under an account of their own."""
STAGERS = 16
"""How many stagers an agent waits for at the same time; other requests to stagers wait."""
STARTING_SECONDS = 10.0
"""Seconds that a pilot may run, by the batch system's count, before its agent counts."""
CGROUP, SAMPLED = "cgroup", "sampled"


class Workplace:
    """What the payloads of one agent share: directories, sandbox store, shepherd and usage sampler. Use it as an `async with` context.

    `root` has all jobs' directories. `disk_share` is how many bytes a job that requests no disk may use there, for each of its
    processors; None: no limit. `passed` names further variables of the agent's environment for payloads. If `cgroups` is
    False, payloads get no cgroups, even if the node delegates some.
    """

    def __init__(
        self,
        *,
        root: Path,
        store: AttemptStores,
        site: SiteName,
        pilot_id: PilotId,
        passed: tuple[str, ...] = (),
        of_site: Mapping[str, str] = MappingProxyType({}),
        isolation: PayloadIsolation | None = None,
        transfers: TransferSettings | None = None,
        gateway: PayloadGateway | None = None,
        images: ImageRuntime | None = None,
        cgroups: bool = True,
        disk_share: int | None = None,
        grace_most: float = GRACE_MOST_SECONDS,
        walltime: float = 0.0,
        starts: PayloadStartWindow = PayloadStartWindow(),  # noqa: B008 - a value that never changes
    ) -> None:
        self.disk_share = disk_share
        self.grace_most = grace_most
        """The most seconds from SIGTERM to SIGKILL that a job gets when it is ended."""
        self.starts = starts
        """When payloads may start."""
        self._walltime = walltime
        self._began = time.monotonic()
        self.images = images
        """The program that runs containers of images on this node; None if there is none."""
        self.root = root
        self.gateway = gateway
        """The gateway through which payloads read their own jobs; None if the pilot has none."""
        self.store = store
        self.site = site
        self.pilot_id = pilot_id
        self.passed = passed
        self.of_site = of_site
        """Variables by which payloads know their site."""
        self.transfers = TransferSite(transfers or TransferSettings(), SystemRandom())
        self.isolation = isolation or PayloadIsolation(mode="none")
        self.processes = Processes()
        self.cgroups = Delegation(wanted=cgroups)
        self.sampler = UsageSampler(root)
        self.spares = SpareWorkdirs(root, (WORK, SCRATCH))
        self.owner: tuple[int, int] | None = None
        """The user and group ids that own payloads' files. None if that is the agent's own user, and before the context is entered."""
        self.readers = Threads(1, "tails")
        """One thread that reads what payloads print, so that reading does not wait for file transfers."""
        self.keepers = Threads(KEEPERS, "outputs")
        """Threads that wait until outputs are stored. So the event loop's own threads stay free to do the storing."""
        self.stagers = Threads(STAGERS, "stagers")
        """Threads that wait for stagers, the processes that handle payloads' files."""
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.root.mkdir, mode=0o700, parents=True, exist_ok=True)
        await self._stack.enter_async_context(self.sampler)
        await self._isolate()
        # Before the shepherd starts, which belongs beside the agent.
        await self._stack.enter_async_context(self.cgroups)
        await self._stack.enter_async_context(self.processes)
        await self.cgroups.prove(self.processes, self.root, kernel_limits(PayloadLimits()))
        if self.processes.isolation_fault:
            log.warning("payloads are not isolated", reason=self.processes.isolation_fault)
        self.owner = payload_owner() if self.isolation_words == NAMESPACES else None
        return self

    async def _isolate(self) -> None:
        # Mounts follow no links: all is told by its true name.
        self.root = await asyncio.to_thread(self.root.resolve)
        self.spares = SpareWorkdirs(self.root, (WORK, SCRATCH))
        settings = self.isolation.settings(self.root)
        self.processes = Processes(settings, required=self.isolation.mode == "required")

    @property
    def overrun(self) -> float:
        """The seconds after which the batch system ends the pilot, if as many have passed; 0 if not, or if they are unknown."""
        return self._walltime if time.monotonic() - self._began > self._walltime - STARTING_SECONDS else 0.0

    @property
    def isolation_words(self) -> str:
        """How payloads are isolated from each other: `namespaces` or `none`."""
        contained = self.isolation.mode != "none" and not self.processes.isolation_fault
        return NAMESPACES if contained else NOT_ISOLATED

    @property
    def reported_isolation(self) -> str:
        """How payloads are isolated, as reports have it: `account` (namespaces, under an account of their own), `namespaces` or `none`."""
        return ACCOUNT if self.owner else self.isolation_words

    @property
    def limit_words(self) -> str:
        """How payloads are held to their limits: by the kernel, each in a `cgroup`, or by the agent, from what was `sampled`."""
        return SAMPLED if self.cgroups.fault else CGROUP

    def cgroup(self, attempt_id: AttemptId, *, in_image: bool) -> str:
        """Return the directory of the cgroup for an attempt's payload; empty if it has none.

        `in_image` says that it runs in a container of an image: it has none if the container would leave the cgroup.
        """
        stays = not in_image or (self.images is not None and self.images.keeps_cgroup)
        return self.cgroups.path(attempt_id) if stays else ""

    @property
    def cuts_network(self) -> bool:
        """Whether payloads can run without a network here."""
        return not self.processes.network_fault

    @property
    def image_words(self) -> str:
        """The program that runs containers of images, with its version. Empty if there is none."""
        return f"{self.images.name} {self.images.version}".strip() if self.images else ""

    async def __aexit__(self, *_: object) -> None:
        """End all payloads that still run and the shepherd, and delete spare directories."""
        await self._stack.aclose()
        self.readers.close()
        self.keepers.close()
        self.stagers.close()
        await asyncio.to_thread(self.spares.clear)

    async def watch(self) -> None:
        """Wait while the usage of payloads is sampled. If sampling fails, raise its error: their limits are not enforced then."""
        await self.sampler.watch()
