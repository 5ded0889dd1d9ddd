"""Elements that forward what jobs require of hosts."""

from pathlib import Path
from typing import Any

from services.pilot_submitter.ce_endpoints import CeEndpoint, CeEndpoints, EndpointSettings
from services.pilot_submitter.host_requests import HostRequests
from wms.db.pilot import NewPilot
from wms.dispatch.forwarding import HostRequestTerms
from wms.dispatch.local import LocalDispatcher
from wms.ids import CeId, PilotId
from wms.matching.ads import advertised
from wms.matching.grouping import Requirements
from wms.provisioning.pilot_class import PilotClass
from wms.site import AdvertisedElement

SOFTWARE = "GlueHostApplicationSoftwareRunTimeEnvironment"


TOLD: dict[str, Any] = {
    "GlueHostMainMemoryRAMSize": 4_000,
    "GlueCEPolicyMaxCPUTime": 1_500,
    "GlueHostBenchmarkSI00": 400,
    SOFTWARE: ["avx512"],
}


RULES = {SOFTWARE: "--constraint={value}", "GlueHostBenchmarkSI00": "--constraint=fast"}


ASKS = HostRequestTerms(kind="slurm", constraint="intel", rules=RULES)


def element(ce: str = "ce", told: dict[str, Any] = TOLD, slots: int = 8, **more: Any) -> AdvertisedElement:
    forwards = tuple(sorted(ASKS.mapping().forwarded))
    return AdvertisedElement(
        site="A", ce=ce, slots=slots, max_cpu_time=1_000, dispatcher="slurm",
        ad=advertised(told, {}, "", ""), **{"forwards": forwards, "memory_mb": 100, **more},
    )  # fmt: skip


def asks(requirements: str = "", **more: Any) -> Requirements:
    said = {"owner": "a", "owner_group": "g", "vo": "v", "setup": "", "cpu_segment": 500, **more}
    return Requirements(requirements=requirements, **said)


def asking(*, mapped: bool = True) -> tuple[HostRequests, CeEndpoint]:
    nothing = LocalDispatcher(Path("/nowhere"), (), {})
    terms = EndpointSettings(kind="slurm", asks=ASKS if mapped else None)
    door = CeEndpoint(CeId("A", "ce"), nothing, lambda: 0.0, terms)
    doors = CeEndpoints(nothing, lambda: 0.0, [door])
    return HostRequests(doors, doors.clock), door


def hosts(
    it: HostRequests, requirements: str, at: AdvertisedElement | None = None, **more: Any
) -> PilotClass:
    found = it.hosts(asks(requirements, **more), at or element())
    assert isinstance(found, PilotClass)
    return found


PICKY = "other.GlueHostMainMemoryRAMSize >= 8000 && other.GlueCEPolicyMaxCPUTime > 60"


def sent(found: PilotClass | None) -> NewPilot:
    return NewPilot(
        pilot_id=PilotId("p"), site="A", ce="ce", vo="v", dispatcher="slurm", slots=1, asks=found.name if found else ""
    )  # fmt: skip
