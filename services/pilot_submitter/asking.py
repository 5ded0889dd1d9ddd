"""What pilots ask their elements for beyond the usual: the hosts that waiting jobs require, a pilot for each class of them.

Jobs whose requirements leave something about hosts at an element make classes there, by what they ask for. The planner counts pilots
on the way by class and orders each for one; here it is told of which class work is, and what that asks for.
"""

import hashlib
from functools import lru_cache

import msgspec
import structlog

from services.pilot_submitter.doors import Door, Doors
from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.db.pilot import Sent
from wms.dispatch.mapping import Asked
from wms.dispatch.port import Request
from wms.errors import Rejected
from wms.provisioning.host_requirements import HostRequirements, host_requirements
from wms.site import ComputingElement, ad_of
from wms.taskqueue.grouping import Requirements

log = structlog.get_logger()

_KEPT = 4_096


class Asking:
    """The classes of hosts that are asked for, by name."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors
        self._asked: dict[str, Asked] = {}
        self._names: dict[tuple[str, ComputingElement], str] = {}

    def hosts(self, requirements: Requirements, element: ComputingElement) -> str:
        """Return the name of the class of hosts that pilots for such jobs ask for there; empty if of none in particular."""
        key = requirements.requirements, element
        name = self._names.get(key)
        if name is None:
            if len(self._names) >= _KEPT:
                self._names.clear()
                self._asked.clear()
            name = self._names[key] = self._named(*key)
        return name

    def _named(self, text: str, element: ComputingElement) -> str:
        door = self._doors.to(element.site, element.ce, element.dispatcher)
        asked = asked_for(door, element, text) if door and text else None
        if asked is None:
            return ""
        name = hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).hexdigest()[:24]
        self._asked[name] = asked
        return name

    def explained(self, pilot: Sent) -> Sent:
        """Return a pilot that is about to be sent with what it asks for among its reasons."""
        asked = self._asked.get(pilot.asks)
        if asked is None:
            return pilot
        unasked = list(map(str, asked.unasked))
        log.info("host asked for", pilot=pilot.pilot_id, asked=asked.asked, unasked=unasked)
        return msgspec.structs.replace(pilot, reason=f"{pilot.reason}; {said(asked)}"[:2_000])

    def request(self, pilot: Sent, door: Door, element: ComputingElement) -> Request:
        """Return what a pilot asks for."""
        asked = self._asked.get(pilot.asks)
        return door.request(element) if asked is None else asked.request


def said(asked: Asked) -> str:
    """Return in a line what is asked for, and what is not."""
    unasked = [f"looked at on the node: {each}" for each in asked.unasked]
    return "; ".join(filter(None, (f"asks for {', '.join(asked.asked)}" if asked.asked else "", *unasked)))


def asked_for(door: Door, element: ComputingElement, text: str) -> Asked | None:
    """Return what a pilot for jobs with such requirements asks for there; None if nothing beyond the usual."""
    mapping = door.terms.mapping
    if mapping is None:
        return None
    try:
        left = _left(text, ad_of(element), mapping.forwarded)
    except Rejected as error:
        log.warning("requirements not forwarded", site=element.site, ce=element.ce, reason=str(error))
        return None
    usual = door.request(element)
    asked = mapping.ask(usual, left.bounds) if left.possible else Asked(usual)
    asked = msgspec.structs.replace(asked, unasked=(*left.unasked, *asked.unasked))
    return asked if asked.request != usual or asked.unasked else None


@lru_cache(maxsize=_KEPT)
def _left(text: str, told: str, forwarded: frozenset[str]) -> HostRequirements:
    return host_requirements(Expression.parse(text), Ad.parse(told) if told else Ad(()), forwarded)
