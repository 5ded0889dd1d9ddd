"""The worker node of a pilot: its measured properties, which are sent with match requests and decide on offers.

The ad of a computing element describes all its hosts. The batch system may have given less than a job requires. So the matcher
also uses the properties that pilots send of their nodes. Before an offer is accepted, the agent evaluates those parts of the
job's requirements again that refer to such properties.
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
"""How many different requirements a pilot remembers that its node does not meet."""
LISTED_LIMIT = 1_000
"""The most values of a list attribute of the node. Attributes with longer lists are not sent."""
_REASON_LENGTH = 400


class NodeJudge:
    """Evaluates the requirements of offered jobs on the properties of the pilot's node.

    `measured` replaces the measurement, for tests. `isolation` says how payloads are isolated; empty if unknown.
    """

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
        """Identifiers of the requirements that this node did not meet.

        They are sent with match requests, so that jobs with the same requirements are not offered again.
        """
        return tuple(self._unfit)

    @cached_property
    def properties(self) -> Told:
        """The properties of the node for match requests: (name, value) pairs, sorted by name in lower case.

        Measured values replace those that were requested of the batch system.
        """
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
        """Return the first part of a job's requirements that is not true on this node, with its values. Empty if all are true.

        Also empty if the job's description cannot be read.
        """
        if offered.fault or not offered.description.requirements:
            return ""  # an unreadable description is reported once the lease is granted
        try:
            return self._judge(offered.job, offered.description)
        except Rejected as error:
            return f"its requirements cannot be judged here: {error}"[:_REASON_LENGTH]

    def _judge(self, job: OfferedJob, description: JobDescription) -> str:
        # Most pilots never see requirements: what evaluates them is not loaded before one comes.
        from wms.matching.ads import words
        from wms.matching.requirements import requirements_of

        # Only the job manager knows the job's CPU time segment; the agent knows the requested CPU time.
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
        """Return the node's ad and, in lower case, those of its names that the pilot sends or that are computed expressions."""
        from wms.matching.ads import resource_ad

        config = self._config
        resource = describe(
            config,
            free=config.pilot.slots,
            memory_taken_mb=0,
            seconds_left=config.resource.cpu_time,
            node=self.properties,
        )
        ad = resource_ad(with_ad(resource, config.resource.ad))
        reckoned = {name.lower() for name in ad.names if (e := ad.expression(name)) and e.names}
        return ad, frozenset({"maxram", *(name for name, _ in self.properties), *reckoned})


def _looks_at_credentials(term: "NodeOfTree") -> bool:
    """Return whether a term references the contents of the job's token. No pilot gets these: only the matcher evaluates it."""
    from wms.classad.expression import Expression
    from wms.matching.ads import CREDENTIALS

    expression = Expression(term)
    return not CREDENTIALS.isdisjoint(expression.own | expression.bare)


ISOLATION = "WMSIsolation"
"""The name of the node attribute that says how payloads are isolated: `namespaces` or `none`."""
_NO_LIBRARY = "this pilot has no library to evaluate ClassAd expressions, and takes no jobs with requirements"


def can_evaluate() -> bool:
    """Return whether `classad2`, the library that evaluates ClassAd expressions, is installed here."""
    return importlib.util.find_spec("classad2") is not None


def measure(config: PilotConfig) -> dict[str, Value]:
    """Return the measured properties of this node, by name. They replace those in the ad of its computing element.

    Most names are of GLUE 1.3. Memory is in MiB, the clock in MHz.
    """
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
    """Return the clock of the fastest processor in MHz, from the text of /proc/cpuinfo. 0 if it has none."""
    return int(max(map(float, re.findall(r"^cpu MHz\s*:\s*([0-9.]+)", cpuinfo, re.MULTILINE)), default=0.0))


def gpus(environment: Mapping[str, str], devices: Path) -> int:
    """Return how many NVIDIA GPUs this process may use: those in the variable CUDA_VISIBLE_DEVICES of `environment`.

    Without that variable, count the device files in the directory `devices`, usually /dev.
    """
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
    """Return the sorted names in a directory without hidden ones; empty if the directory cannot be read."""
    try:
        return tuple(sorted(each.name for each in directory.iterdir() if not each.name.startswith(".")))
    except OSError:
        return ()


def _system() -> dict[str, Value]:
    """Return the name and release of the operating system, of `os-release` if it exists, else of the kernel."""
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        system = {}
    name, release = system.get("NAME", platform.system()), system.get("VERSION_ID", platform.release())
    return {"GlueHostOperatingSystemName": name, "GlueHostOperatingSystemRelease": release}
