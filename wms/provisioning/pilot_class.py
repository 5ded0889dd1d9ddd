"""Classes of pilots: what their element is asked for beyond the usual, and what is known of their nodes by that.

A pilot that its batch system was asked for by a job's requirements does for this job and for those that ask for less; for
others, only its own measurements can tell. A pilot that was asked for as usual does for what its element's ad meets.
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
    """What is asked for, in words, each with the option that says it."""
    unasked: tuple[str, ...] = ()
    """What is not, and why: the node is looked at."""
    node: Told = ()
    """What is known of the node of one that came, above what its element's ad says."""
    sure: bool = True
    """Whether such a node does for the work that the pilots are sent for; if not, only a pilot that is there can tell."""

    @property
    def name(self) -> str:
        """A name that is the same wherever the same is asked for."""
        return _name(self)

    def __str__(self) -> str:
        unasked = (f"looked at on the node: {each}" for each in self.unasked)
        return "; ".join((*((f"asks for {', '.join(self.asked)}",) if self.asked else ()), *unasked))


@lru_cache(maxsize=_KEPT)
def _name(hosts: PilotClass) -> str:
    return sha256(json.encode(hosts)).hexdigest()[:24]


@lru_cache(maxsize=_KEPT)
def do(hosts: PilotClass | None, requirements: Requirements, element: ComputingElement) -> bool:
    """Tell whether pilots of a class at an element, None for the usual ones, do for what is required, as far as is known."""
    resource = element.pilot_resource(vo=requirements.vo)
    return job_wants(asked(requirements), as_it_is(resource, hosts.node if hosts else ()))
