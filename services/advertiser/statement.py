"""Makes the content of a computing element's ad from readings and configuration, and finds the important changes.

A site's limits on jobs are those of SAM-Grid: the most jobs in any state, and the most that are submitted and do not run yet. Terms on job counts in
a site's requirements make a separate rule (`services.advertiser.site_rule`).
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from services.advertiser.config import SiteStatement
from services.advertiser.provider import SeenElement
from services.advertiser.site_rule import with_rule
from wms.glue import ad, glue1, quantity
from wms.glue.quantity import known
from wms.ids import CeId
from wms.site import ComputingElement

MATCHED = "CurMatches - CurrentJobs"
BENCHMARKS = {"HEPSPEC06": "hepspec06", "SI00": "si00", "SF00": "sf00"}
"""Field names of benchmarks in GLUE 1.x records, by their names in the configuration."""
ENTRY_POINT = "GlobusResourceContactString"
"""The attribute with the address at which jobs are submitted. In EGEE's ads it was a GRAM contact; here it is any address."""
MONITORING_DATABASE = "MonitoringDatabaseURL"
FREE_PART = 0.25
"""The fraction of all slots by which the free slots must change to make an ad due at once."""


class AdContent(msgspec.Struct, frozen=True, kw_only=True):
    """The content of one computing element's ad, without the time at which it is sent."""

    element: ComputingElement
    attributes: dict[str, Any]
    expressions: dict[str, str]
    requirements: str
    rank: str
    observed_at: datetime | None = None
    """When the source counted the computing element's jobs. None if that is unknown."""

    @property
    def place(self) -> CeId:
        """The id of the computing element: its site and its name there."""
        return self.element.ce_id


def state(seen: SeenElement, settings: SiteStatement) -> AdContent:
    """Return the content of a computing element's ad, from what was read (`seen`) and what its site states (`settings`)."""
    glue = _completed(seen.glue, seen.offer, settings)
    attributes = (
        ad.matchable(glue)
        | _limits(seen.offer)
        | _stations(settings)
        | _ways_in(glue, settings)
        | settings.attributes
    )
    element, requirements = with_rule(seen.offer, attributes, settings.requirements)
    return AdContent(
        element=element,
        attributes=attributes,
        expressions=ad.EXPRESSIONS | {"JobsMatchedSinceLastAdvertisement": MATCHED},
        requirements=requirements,
        rank=settings.rank,
        observed_at=seen.observed_at,
    )


def _completed(
    glue: glue1.GlueComputingElement, offer: ComputingElement, settings: SiteStatement
) -> glue1.GlueComputingElement:
    """Return the GLUE record with configured additions; configured VOs and slots override read ones."""
    near = tuple(
        glue1.StorageBinding(storage_element=name, mount_point=mount)
        for name, mount in settings.close_storage.items()
    )
    return replace(
        glue,
        site=offer.site,
        total_cpus=offer.slots,
        max_cpu_seconds=_cpu_seconds(glue, offer, settings),
        access_rules=tuple(f"VO:{vo}" for vo in settings.vos) or glue.access_rules,
        hosts=_hosts(glue.hosts, settings),
        storage=near or glue.storage,
    )


def _cpu_seconds(
    glue: glue1.GlueComputingElement, offer: ComputingElement, settings: SiteStatement
) -> quantity.Quantity:
    """Return the CPU time in seconds for the ad: the stated one, or the one that the source publishes.

    A published placeholder for "unknown" is kept, because expressions may test for it.
    """
    stated = getattr(settings, "max_cpu_time", 0)
    as_published = any(name == "GlueCEPolicyMaxCPUTime" for name, _ in glue.published)
    return glue.max_cpu_seconds if as_published and not stated else offer.max_cpu_time


def _hosts(hosts: glue1.GlueHosts, settings: SiteStatement) -> glue1.GlueHosts:
    measured = {
        BENCHMARKS[name]: result if name == "HEPSPEC06" else int(result)
        for name, result in settings.benchmarks.items()
        if name in BENCHMARKS
    }
    applications = tuple(dict.fromkeys([*hosts.applications, *settings.applications]))
    return replace(hosts, applications=applications, **measured)


def _limits(offer: ComputingElement) -> dict[str, int]:
    """Return the attributes of the ad with limits and counts of jobs, which rules and jobs' expressions use."""
    limits = {"MaxJobs": offer.max_jobs, "MaxSubmittingJobs": offer.max_submitting_jobs}
    return {
        "CurrentJobs": offer.current_jobs,
        "CurrentSubmittingJobs": offer.current_submitting_jobs,
        **{name: limit for name, limit in limits.items() if limit},
    }


def _stations(settings: SiteStatement) -> dict[str, list[str]]:
    return {"StationNames": list(settings.stations)} if settings.stations else {}


def _ways_in(glue: glue1.GlueComputingElement, settings: SiteStatement) -> dict[str, str]:
    """Return the attributes of the ad that name the site's entry point and its monitoring database."""
    said = {
        ENTRY_POINT: settings.entry_point or _gram_contact(glue),
        MONITORING_DATABASE: settings.monitoring_database,
    }
    return {name: value for name, value in said.items() if value}


def _gram_contact(glue: glue1.GlueComputingElement) -> str:
    """Return the GRAM contact in the GLUE record. If it has none, build one from the record's host, port and queue."""
    host, port = glue.host_name, known(glue.gatekeeper_port)
    if glue.contact or not host or not glue.job_manager:
        return glue.contact
    manager = f"{glue.job_manager}-{glue.lrms_type}" if glue.lrms_type else glue.job_manager
    return f"{host}{f':{port}' if port else ''}/{manager}"


def important_change(before: AdContent | None, after: AdContent) -> str:
    """Return the important change from the ad `before` to `after`, as text for the log. Empty if there is none.

    An important change is published at once, because matchers and the pilot submitter need it. Changed counts of jobs, the load
    and a few free slots are not important. If `before` is None, the computing element is new.
    """
    if before is None:
        return "it is new"
    for what, part in _PARTS.items():
        if part(before) != part(after):
            return what
    return _of_limits(before.element, after.element) or _of_slots(before, after)


def _steady(said: AdContent) -> ComputingElement:
    return replace(said.element, load=0.0, current_jobs=0, current_submitting_jobs=0)


_PARTS: dict[str, Callable[[AdContent], object]] = {
    "what it offers": _steady,
    "its state": lambda said: said.attributes.get("GlueCEStateStatus"),
    "who may use it": lambda said: said.attributes.get("GlueCEAccessControlBaseRule"),
    "what its site demands": lambda said: (said.requirements, said.rank, said.expressions),
}


def _of_limits(before: ComputingElement, after: ComputingElement) -> str:
    """Return the change of limits on jobs as text; empty if there is none.

    A change is that a limit is reached or no longer reached, or that job counts change while a limit is reached.
    """
    jobs = [bool(each.max_jobs) and each.current_jobs >= each.max_jobs for each in (before, after)]
    submitting = [
        bool(each.max_submitting_jobs) and each.current_submitting_jobs >= each.max_submitting_jobs
        for each in (before, after)
    ]
    if jobs[0] != jobs[1] or submitting[0] != submitting[1]:
        return "a limit on jobs"
    # A job that ends leaves its pilot idle, and that pilot may get another.
    others = (before.current_jobs, before.current_submitting_jobs) != (
        after.current_jobs,
        after.current_submitting_jobs,
    )
    return "jobs at a limit" if (jobs[0] or submitting[0]) and others else ""


def _of_slots(before: AdContent, after: AdContent) -> str:
    was, now = _free(before.attributes), _free(after.attributes)
    if was is None or now is None:
        return "" if was == now else "free slots"
    many = max(1, int(FREE_PART * max(after.element.slots, 1)))
    return "free slots" if (was == 0) != (now == 0) or abs(was - now) >= many else ""


def _free(attributes: Mapping[str, Any]) -> int | None:
    free = attributes.get("GlueCEStateFreeJobSlots")
    return free if isinstance(free, int) else None
