"""Candidates: computing elements as the broker considers them, from their ads or from an index server's records in GLUE."""

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
"""Results of benchmarks by the names that `benchmark_names.benchmark_key` gives; a higher result is a faster machine."""


class Candidate(Struct, frozen=True, kw_only=True):
    """A computing element that a job may be placed at, with its present load; None stands for what is not known.

    `element` is the ad by which the matcher judges it, so `element.dispatcher` is the kind of its door and its limits are there.
    """

    element: ComputingElement
    slots: int = 0
    """The number of jobs that can run there at a time; 0: it takes none now."""
    free_slots: int | None = None
    running_jobs: int | None = None
    waiting_jobs: int | None = None
    response_seconds: float | None = None
    """The element's own estimate of how long a job waits there."""
    benchmarks: Benchmarks = {}
    near_storage: tuple[str, ...] = ()
    """The storage close to it: hosts, or names of storage elements, from which it reads at the speed of a local network."""
    stages_ahead: bool = False
    """Whether inputs are brought there while the job waits, not in its slot."""
    reserves: bool = False
    """Whether it can be asked for a reservation."""
    observed_at: datetime | None = None
    """When its load was counted."""

    @property
    def site(self) -> str:
        """Its site's name."""
        return self.element.site

    @property
    def ce(self) -> str:
        """Its name at the site."""
        return self.element.ce

    @property
    def place(self) -> CeId:
        """Its id: site and name."""
        return self.element.ce_id


def candidate(element: ComputingElement, glue: GlueComputingElement, **more: Any) -> Candidate:
    """Return the candidate of an ad and its record in GLUE. `more` are fields of `Candidate` that neither tells."""
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
    """Return the candidate of a stored ad: its element, and its attributes by the names of GLUE. `more` as for `candidate`."""
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
