"""Pilot classes: what pilots ask their element for beyond the usual, and what is therefore known of their nodes.

A pilot that was asked for by a job's requirements fits this job and jobs that ask for less; for others only its own
measurements can tell. A pilot that was asked for as usual fits what its element's ad meets.
"""

from functools import lru_cache
from hashlib import sha256

from msgspec import Struct, json

from wms.matching.grouping import Requirements
from wms.matching.two_sided import asked, job_wants
from wms.site import ComputingElement, Told, as_it_is

_KEPT = 16_384


class PilotClass(Struct, frozen=True, cache_hash=True):
    """A class of pilots."""

    asked: tuple[str, ...] = ()
    """What is asked for, in words, each with its option of the batch system."""
    unasked: tuple[str, ...] = ()
    """What is not asked for, and why: the node is checked."""
    node: Told = ()
    """Known attributes of the node of such a pilot, beyond its element's ad."""
    sure: bool = True
    """Whether such a node surely fits the work; if not, only a pilot that is there can tell."""

    @property
    def name(self) -> str:
        """A name that is equal where the same is asked for."""
        return _name(self)

    def __str__(self) -> str:
        unasked = (f"looked at on the node: {each}" for each in self.unasked)
        return "; ".join((*((f"asks for {', '.join(self.asked)}",) if self.asked else ()), *unasked))


@lru_cache(maxsize=_KEPT)
def _name(hosts: PilotClass) -> str:
    return sha256(json.encode(hosts)).hexdigest()[:24]


@lru_cache(maxsize=_KEPT)
def do(hosts: PilotClass | None, requirements: Requirements, element: ComputingElement) -> bool:
    """Tell whether pilots of a class at an element, None for the usual ones, fit the requirements as far as is known."""
    resource = element.pilot_resource(vo=requirements.vo)
    return job_wants(asked(requirements), as_it_is(resource, hosts.node if hosts else ()))
