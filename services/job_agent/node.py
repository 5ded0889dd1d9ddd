"""The node that the pilot is on, as jobs' requirements see it: what its element told, and above that what is measured here.

An element's ad speaks for all its hosts, and what was asked of the batch system may be less than a job requires. So before an
offer is taken its requirements are evaluated here. Terms that look at nothing measured were judged by the matcher, by an ad
newer than the one that this pilot was sent with: these are not judged again.
"""

import importlib.util
import os
import platform
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from services.job_agent.resource import memory_mb
from wms.errors import Rejected
from wms.messages.site_inbox import OfferedJob
from wms.runtime.machine import look
from wms.runtime.pilot_config import PilotConfig
from wms.taskqueue.node import NOTHING_EVALUATED, wish

if TYPE_CHECKING:
    from wms.classad.ad import Ad, Given
    from wms.classad.expression import Expression

UNFIT_LIMIT = 100
"""Kinds of requirements that a pilot remembers to have found its node not to do for."""
_REASON_LENGTH = 400


class _Wishes(msgspec.Struct):
    """What of a description is looked at here."""

    requirements: str = ""
    attributes: dict[str, Any] = {}
    processors: int = 1
    memory_mb: int | None = None
    cpu_time: int = 86_400
    job_type: str = ""
    setup: str = ""
    tags: list[str] = []


class Node:
    """Judges offers by what the node is."""

    def __init__(self, config: PilotConfig, measured: Mapping[str, "Given"] | None = None) -> None:
        self._config = config
        self._measured = measured
        self._ad: Ad | None = None
        self._unfit: dict[str, None] = {} if can_evaluate() else {NOTHING_EVALUATED: None}

    @property
    def unfit(self) -> tuple[str, ...]:
        """What to tell with requests: which requirements this node does not do for."""
        return tuple(self._unfit)

    def fault(self, job: OfferedJob) -> str:
        """Return which term of a job's requirements is not true here, and the values it saw; nothing if the node will do."""
        try:
            wishes = msgspec.json.decode(job.description, type=_Wishes)
        except msgspec.DecodeError:
            return ""  # whoever reads it whole says what is wrong
        if not wishes.requirements:
            return ""
        try:
            return self._judge(job, wishes)
        except Rejected as error:
            return f"its requirements cannot be judged here: {error}"[:_REASON_LENGTH]

    def _judge(self, job: OfferedJob, wishes: _Wishes) -> str:
        # Most pilots never see requirements: what evaluates them is not loaded before one comes.
        from wms.classad.ad import Ad
        from wms.classad.expression import Expression

        wanted = Expression.parse(wishes.requirements)
        kind = wish(wanted.text, Ad.of(wishes.attributes).text if wishes.attributes else "")
        if kind not in self._unfit and NOTHING_EVALUATED not in self._unfit:
            own = _own(job, wishes)
            reason = self._failing(own.bind(wanted), own)
            if not reason:
                return ""
            self._remember(kind)
            return f"the node does not do: {reason}"[:_REASON_LENGTH]
        return "the node does not do for such requirements" if can_evaluate() else _NO_LIBRARY

    def _failing(self, wanted: "Expression", own: "Ad") -> str:
        from wms.classad.explain import explain
        from wms.classad.expression import Expression
        from wms.classad.tree import split

        ad, measured = self._described
        terms = zip(map(Expression, split("&&", wanted.tree)), explain(wanted, ad, own), strict=True)
        return next((str(each) for term, each in terms if not each.met and term.names & measured), "")

    @property
    def _described(self) -> "tuple[Ad, frozenset[str]]":
        """Return the node's ad, and the names in it that are measured or reckoned, in lower case."""
        from wms.classad.ad import Ad

        measured = measure(self._config) if self._measured is None else self._measured
        names = {name.lower() for name in measured}
        if self._ad is None:
            told = Ad.parse(self._config.resource.ad) if self._config.resource.ad else Ad(())
            said: dict[str, Given] = {**_words(self._config)}
            said |= {name: each for name in told.names if (each := told.expression(name)) is not None}
            kept = {name: each for name, each in said.items() if name.lower() not in names}
            filled = {
                name: each for name, each in _names().items() if name.lower() not in map(str.lower, kept)
            }
            self._ad = Ad.of({**kept, **filled, **measured})
        reckoned = {name.lower() for name in self._ad.names if (e := self._ad.expression(name)) and e.names}
        return self._ad, frozenset(names | reckoned)

    def _remember(self, kind: str) -> None:
        self._unfit[kind] = None
        if len(self._unfit) > UNFIT_LIMIT:
            del self._unfit[next(iter(self._unfit))]


_NO_LIBRARY = "this pilot has no library to evaluate ClassAd expressions, and takes no jobs with requirements"


def can_evaluate() -> bool:
    """Tell whether the library that evaluates expressions is installed."""
    return importlib.util.find_spec("classad2") is not None


def measure(config: PilotConfig) -> "dict[str, Given]":
    """Return what can be seen of this node itself, which its element's ad cannot know better; names of GLUE 1.3."""
    clock = clock_mhz(_cpuinfo())
    software = config.resource.software
    return {
        "GlueHostMainMemoryRAMSize": look().memory_mb,
        "GlueHostArchitectureSMPSize": os.cpu_count() or 1,
        "GlueHostArchitecturePlatformType": platform.machine(),
        "MaxRAM": memory_mb(config),
        "GPUNumber": gpus(os.environ, Path("/dev")),
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


def _names() -> "dict[str, Given]":
    """Return names that the element may tell in words of its own, where it does not."""
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        system = {}
    name, release = system.get("NAME", platform.system()), system.get("VERSION_ID", platform.release())
    return {"GlueHostOperatingSystemName": name, "GlueHostOperatingSystemRelease": release}


def _words(config: PilotConfig) -> "dict[str, Given]":
    resource, pilot = config.resource, config.pilot
    return {
        "Site": pilot.site,
        "GridCE": pilot.ce,
        "Setup": resource.setup,
        "PilotType": resource.pilot_type or None,
        "CPUTime": resource.cpu_time,
        "NumberOfProcessors": pilot.slots,
        "Platforms": tuple(resource.platforms) or look().platforms,
        "Tags": tuple(resource.tags),
    }


def _own(job: OfferedJob, wishes: _Wishes) -> "Ad":
    from wms.classad.ad import Ad

    said: dict[str, Given] = {
        "Owner": job.owner,
        "OwnerGroup": job.owner_group,
        "VirtualOrganisation": job.vo,
        "Setup": wishes.setup or None,
        "JobType": wishes.job_type or None,
        "CPUTime": wishes.cpu_time,
        "NumberOfProcessors": wishes.processors,
        "MinRAM": wishes.memory_mb,
        "ImageSize": wishes.memory_mb and 1024 * wishes.memory_mb,
        "Tags": tuple(wishes.tags),
    }
    return Ad.of({**{name: each for name, each in said.items() if each is not None}, **wishes.attributes})
