"""The node that the pilot is on: what is measured here, told with every request, and judged by before an offer is taken.

An element's ad speaks for all its hosts, and what was asked of the batch system may be less than a job requires. The matcher
judges by what pilots tell of their nodes, and before an offer is taken its requirements are evaluated here, by the same functions.
Terms that look at nothing told here were judged by the matcher alone, by an ad newer than the one that this pilot was sent
with: these are not judged again.
"""

import importlib.util
import os
import platform
import re
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from services.job_agent.offered import DecodedOffer
from services.job_agent.resource import describe
from wms.bounded_cache import BoundedCache
from wms.errors import Rejected
from wms.jobdesc.description import JobDescription
from wms.matching.node_facts import NOTHING_EVALUATED, wish
from wms.messages.site_inbox import OfferedJob
from wms.runtime.machine import look
from wms.runtime.pilot_config import PilotConfig
from wms.site import Told, Value, with_ad

if TYPE_CHECKING:
    from wms.classad.ad import Ad
    from wms.classad.tree import Node as NodeOfTree
    from wms.matching.ads import Words

UNFIT_LIMIT = 100
"""Kinds of requirements that a pilot remembers to have found its node not to do for."""
LISTED_LIMIT = 1_000
"""Names of one attribute that are told."""
_REASON_LENGTH = 400


class NodeJudge:
    """Judges offers by what the node is."""

    def __init__(
        self, config: PilotConfig, measured: Mapping[str, Value] | None = None, *, isolation: str = ""
    ) -> None:
        self._config = config
        self._isolation = {ISOLATION: isolation} if isolation else {}
        self._measured = measured
        self._unfit = BoundedCache[str, None](UNFIT_LIMIT)
        if not can_evaluate():
            self._unfit[NOTHING_EVALUATED] = None

    @property
    def unfit(self) -> tuple[str, ...]:
        """What to tell with requests: which requirements this node does not do for."""
        return tuple(self._unfit)

    @cached_property
    def told(self) -> Told:
        """What to tell of the node with requests: what is measured, above what its batch system was asked for."""
        measured = measure(self._config) if self._measured is None else self._measured
        measured = {**measured, **self._isolation}
        asked = dict(self._config.resource.node)
        known = asked | {name.lower(): value for name, value in measured.items()}
        return tuple(
            (name, value)
            for name, value in sorted(known.items())
            if not isinstance(value, tuple) or len(value) <= LISTED_LIMIT
        )

    def fault(self, offered: DecodedOffer) -> str:
        """Return which term of a job's requirements is not true here, and the values it saw; nothing if the node will do."""
        if offered.fault or not offered.description.requirements:
            return ""  # who takes a faulty one says what is wrong with it
        try:
            return self._judge(offered.job, offered.description)
        except Rejected as error:
            return f"its requirements cannot be judged here: {error}"[:_REASON_LENGTH]

    def _judge(self, job: OfferedJob, description: JobDescription) -> str:
        # Most pilots never see requirements: what evaluates them is not loaded before one comes.
        from wms.matching.ads import words
        from wms.matching.requirements import requirements_of

        # Its segment is the job manager's to know; what is asked for is as much as is known here.
        segments = (description.cpu_time,)
        asked = requirements_of(description, job.owner, job.owner_group, job.vo, segments)
        kind = wish(asked.requirements, asked.attributes)
        if kind not in self._unfit and NOTHING_EVALUATED not in self._unfit:
            reason = self._failing(description.requirements, words(asked))
            if not reason:
                return ""
            self._unfit[kind] = None
            return f"the node does not do: {reason}"[:_REASON_LENGTH]
        return "the node does not do for such requirements" if can_evaluate() else _NO_LIBRARY

    def _failing(self, requirements: str, job: "Words") -> str:
        from wms.classad.expression import Expression
        from wms.matching.ads import job_ad
        from wms.matching.two_sided import unmet

        ad, told = self._described
        own = job_ad(job)
        return next(
            (
                str(each)
                for term, each in unmet(requirements, own, ad)
                if own.bind(Expression(term)).other & told and not _looks_at_credentials(term)
            ),
            "",
        )

    @cached_property
    def _described(self) -> "tuple[Ad, frozenset[str]]":
        """Return the node's ad, and the names in it that are told here or reckoned, in lower case."""
        from wms.matching.ads import resource_ad

        config = self._config
        resource = describe(
            config,
            free=config.pilot.slots,
            memory_taken_mb=0,
            seconds_left=config.resource.cpu_time,
            node=self.told,
        )
        ad = resource_ad(with_ad(resource, config.resource.ad))
        reckoned = {name.lower() for name in ad.names if (e := ad.expression(name)) and e.names}
        return ad, frozenset({"maxram", *(name for name, _ in self.told), *reckoned})


def _looks_at_credentials(term: "NodeOfTree") -> bool:
    """Tell whether a term looks at what the job's token says, which is told to no pilot: the matcher alone judges it."""
    from wms.classad.expression import Expression
    from wms.matching.ads import CREDENTIALS

    expression = Expression(term)
    return not CREDENTIALS.isdisjoint(expression.own | expression.bare)


ISOLATION = "WMSIsolation"
"""What of a node tells how its pilot isolates payloads: `namespaces` or `none`."""
_NO_LIBRARY = "this pilot has no library to evaluate ClassAd expressions, and takes no jobs with requirements"


def can_evaluate() -> bool:
    """Tell whether the library that evaluates expressions is installed."""
    return importlib.util.find_spec("classad2") is not None


def measure(config: PilotConfig) -> dict[str, Value]:
    """Return what can be seen of this node itself, which its element's ad cannot know better; names of GLUE 1.3."""
    clock = clock_mhz(_cpuinfo())
    software = config.resource.software
    return {
        "GlueHostMainMemoryRAMSize": look().memory_mb,
        "GlueHostArchitectureSMPSize": os.cpu_count() or 1,
        "GlueHostArchitecturePlatformType": platform.machine(),
        "GPUNumber": gpus(os.environ, Path("/dev")),
        **_system(),
        **({"GlueHostProcessorClockSpeed": clock} if clock else {}),
        **({"GlueHostApplicationSoftwareRunTimeEnvironment": _listed(Path(software))} if software else {}),
    }


def clock_mhz(cpuinfo: str) -> int:
    """Return the clock of the fastest processor, of the text of /proc/cpuinfo; 0 if that does not say it."""
    return int(max(map(float, re.findall(r"^cpu MHz\s*:\s*([0-9.]+)", cpuinfo, re.MULTILINE)), default=0.0))


def gpus(environment: Mapping[str, str], devices: Path) -> int:
    """Return how many NVIDIA devices this pilot was given, or else how many there are."""
    given = environment.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return len([each for each in given.split(",") if each.strip() not in ("", "-1", "NoDevFiles")])
    return sum(1 for each in devices.glob("nvidia*") if each.name.removeprefix("nvidia").isdecimal())


@cache
def _cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""


def _listed(directory: Path) -> tuple[str, ...]:
    """Return the names in a directory: none if it is not there, for then nothing is installed."""
    try:
        return tuple(sorted(each.name for each in directory.iterdir() if not each.name.startswith(".")))
    except OSError:
        return ()


def _system() -> dict[str, Value]:
    """Return the names of the operating system, which the element may tell in words of its own."""
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        system = {}
    name, release = system.get("NAME", platform.system()), system.get("VERSION_ID", platform.release())
    return {"GlueHostOperatingSystemName": name, "GlueHostOperatingSystemRelease": release}
