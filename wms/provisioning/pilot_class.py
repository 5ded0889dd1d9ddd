"""Pilot classes: what pilots request of a batch system beyond the default, and what these requests tell about their nodes.

A pilot that was requested for a job's requirements fits this job, and jobs that require less. For other jobs only its own measurements can decide. A
pilot without extra requests fits the jobs whose requirements the element's ad meets.
"""

from functools import lru_cache
from hashlib import sha256

from msgspec import Struct, json

from wms.matching.grouping import Requirements
from wms.matching.two_sided import asked, job_wants
from wms.site import ComputingElement, Told, as_it_is

_KEPT = 16_384
"""The largest number of results that each cache of this module keeps."""


class PilotClass(Struct, frozen=True, cache_hash=True):
    """Pilots that are sent with the same special requests to the batch system."""

    asked: tuple[str, ...] = ()
    """Descriptions of what is requested, each with the batch system's option for it."""
    unasked: tuple[str, ...] = ()
    """Descriptions of requirements that cannot be requested, with the reason. The pilot checks its node for them."""
    node: Told = ()
    """What is known of the node of such a pilot, as attributes, in addition to its element's ad."""
    sure: bool = True
    """Whether each node that such a pilot may get certainly fits the jobs that the pilot is sent for. If not, the pilot decides there."""

    @property
    def name(self) -> str:
        """A hash that is equal for classes with equal contents."""
        return _name(self)

    def __str__(self) -> str:
        unasked = (f"looked at on the node: {each}" for each in self.unasked)
        return "; ".join((*((f"asks for {', '.join(self.asked)}",) if self.asked else ()), *unasked))


@lru_cache(maxsize=_KEPT)
def _name(hosts: PilotClass) -> str:
    return sha256(json.encode(hosts)).hexdigest()[:24]


@lru_cache(maxsize=_KEPT)
def class_fits(hosts: PilotClass | None, requirements: Requirements, element: ComputingElement) -> bool:
    """Return whether pilots of a class at an element meet a job's ClassAd requirements, as far as known.

    None stands for pilots without special requests.
    """
    resource = element.pilot_resource(vo=requirements.vo)
    return job_wants(asked(requirements), as_it_is(resource, hosts.node if hosts else ()))
