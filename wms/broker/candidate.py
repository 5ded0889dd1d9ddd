"""Candidates: computing elements as the resource broker considers them, from ads or from GLUE records of an index server."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

from msgspec import Struct

from wms.broker.benchmark_names import advertised_benchmarks, named_benchmarks
from wms.glue import ad, glue1
from wms.glue.glue1 import GlueComputingElement
from wms.glue.quantity import known
from wms.ids import CeId
from wms.site import ComputingElement

Benchmarks: TypeAlias = Mapping[str, float]
"""Benchmark results by the names that `benchmark_names.benchmark_key` returns; a higher result means a faster machine."""


class Candidate(Struct, frozen=True, kw_only=True, gc=False):
    """A computing element at which a job may be placed, with its present load. None means that a value is not known.

    `element` is its ad, by which the matcher decides what fits. `element.dispatcher` is the kind of its interface, such as a
    batch system's.
    """

    element: ComputingElement
    slots: int = 0
    """How many jobs can run at the element at a time; 0: it accepts none now."""
    free_slots: int | None = None
    running_jobs: int | None = None
    waiting_jobs: int | None = None
    response_seconds: float | None = None
    """The element's own estimate, in seconds, of how long a new job waits there."""
    benchmarks: Benchmarks = {}
    near_storage: tuple[str, ...] = ()
    """Storage close to the element, from which it reads at local network speed: host names, or names of storage elements."""
    reserves: bool = False
    """Whether the broker can ask the site to reserve CPUs of this element."""
    observed_at: datetime | None = None
    """When the load (free slots, running and waiting jobs) was counted."""

    @property
    def site(self) -> str:
        """The name of the element's site."""
        return self.element.site

    @property
    def ce(self) -> str:
        """The name of the computing element, unique within its site."""
        return self.element.ce

    @property
    def place(self) -> CeId:
        """The id of the computing element: its site and its name."""
        return self.element.ce_id


def candidate(element: ComputingElement, glue: GlueComputingElement, **more: Any) -> Candidate:
    """Return the candidate for a computing element, from its ad (`element`) and its GLUE record (`glue`).

    `more` are values of further fields of `Candidate`. They override those from the ad and the record.
    """
    response = known(glue.estimated_response_seconds)
    told = {
        "slots": element.slots,
        "free_slots": _free(glue),
        "running_jobs": known(glue.running_jobs),
        "waiting_jobs": _waiting(element, glue),
        "response_seconds": None if response is None else float(response),
        "benchmarks": named_benchmarks(glue.hosts),
        "near_storage": tuple(each.storage_element for each in glue.storage),
    }
    return Candidate(element=element, **told | more)


def advertised_candidate(element: ComputingElement, attributes: Mapping[str, Any], **more: Any) -> Candidate:
    """Return the candidate for a stored ad: `element` is the parsed ad, `attributes` its values by their GLUE names.

    `more` are values of further fields of `Candidate`. They override those from the ad.
    """
    named = {"GlueCEUniqueID": f"{element.site}/{element.ce}", **attributes}
    glue = ad.element_of(named)
    benchmarks = named_benchmarks(glue.hosts) | advertised_benchmarks(attributes)
    return candidate(element, glue, **{"benchmarks": benchmarks} | more)


def _free(glue: glue1.GlueComputingElement) -> int | None:
    slots, cpus = known(glue.free_job_slots), known(glue.free_cpus)
    return cpus if slots is None else slots


def _waiting(element: ComputingElement, glue: GlueComputingElement) -> int | None:
    waiting = known(glue.waiting_jobs)
    return waiting if waiting is not None else element.current_submitting_jobs or None
