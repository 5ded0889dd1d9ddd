"""Requests for hosts (nodes): the special requests to the batch system by which pilots get the hosts that waiting jobs require.

Pilots with the same special requests are a class. A class pauses if the batch system refuses it, or if only the node can judge
whether it fits. Each pause is longer than the last. The pauses end once a pilot of the class has found work.
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

import structlog

from services.pilot_submitter.ce_endpoints import CeEndpoint, CeEndpoints, CircuitBreaker
from services.pilot_submitter.script_answers import ScriptAnswers, Version
from wms.bounded_cache import BoundedCache
from wms.db.pilot import EqualPilots, NewPilot
from wms.dispatch.forwarding import Forwarded, forward
from wms.dispatch.mapping_script import why_avoided
from wms.dispatch.port import Request
from wms.errors import Rejected
from wms.ids import CeId
from wms.matching.grouping import Requirements
from wms.provisioning.demand import Avoidance
from wms.provisioning.pilot_class import PilotClass
from wms.site import ComputingElement

log = structlog.get_logger()

_KEPT = 16_384

Name: TypeAlias = tuple[CeId, str]
"""The id of a computing element, and the name of a pilot class (pilots with the same special requests) there."""


class HostRequests:
    """The pilot classes at all elements, with their requests and pauses after failures; `clock` returns monotonic seconds."""

    def __init__(self, endpoints: CeEndpoints, clock: Callable[[], float]) -> None:
        self._endpoints = endpoints
        self._clock = clock
        self._forwarded = BoundedCache[
            tuple[Requirements, ComputingElement, Version | None], Forwarded | None
        ](_KEPT)
        self._requests: dict[Name, Request] = {}
        self._unsure: set[Name] = set()
        self._trust = BoundedCache[Name, tuple[CircuitBreaker, str]](_KEPT)

    def hosts(self, requirements: Requirements, element: ComputingElement) -> PilotClass | Avoidance | None:
        """Return the pilot class for jobs with these requirements at an element; None if pilots need no special requests.

        Return `Avoidance` with the reason if no pilots are to be sent for these jobs now.
        """
        found = self._forward(requirements, element)
        if found is not None and found.avoided:
            return self._avoided(requirements, element, found)
        if found is None or found.hosts is None:
            return None
        name = element.ce_id, found.hosts.name
        if not found.hosts.sure:
            self._unsure.add(name)
        self._requests[name] = found.request
        patience, why = self._trust.get(name, (None, ""))
        return (
            found.hosts if patience is None or patience.over else Avoidance("BACKOFF", f"backing-off: {why}")
        )

    def request(self, pilot: NewPilot, endpoint: CeEndpoint, element: ComputingElement) -> Request:
        """Return what a pilot requests of the batch system: what its class requests; else what is usual at the endpoint .

        `element` is the pilot's computing element.
        """
        return self._requests.get(_name(pilot)) or endpoint.request(element)

    def sent(self, pilots: Iterable[NewPilot]) -> None:
        """Record that these pilots are being sent.

        If only the node can judge whether a pilot fits a class, the class pauses after each such call.
        """
        for each in pilots:
            if each.asks:
                log.info("host asked for", pilot=each.pilot_id, reason=each.reason)
            if _name(each) in self._unsure:
                self._failed(_name(each), "no pilot has found such a node yet")

    def refused(self, pilot: NewPilot, why: str) -> None:
        """Record that a batch system refused a pilot for the reason `why`: its class pauses, and no other pilots do."""
        self._failed(_name(pilot), why)

    def seen(self, supplies: Iterable[EqualPilots]) -> None:
        """End the pauses of those classes of which a live pilot has found work; to be called when a plan begins.

        `supplies` are the groups of live pilots.
        """
        if len(self._requests) > _KEPT:
            self._requests.clear()
            self._unsure.clear()
        for each in supplies:
            if each.asks and each.worked:
                self._trust.pop((CeId(each.site, each.ce), each.asks), None)

    def _failed(self, name: Name, why: str) -> None:
        patience, _ = self._trust.get(name) or (CircuitBreaker(self._clock), "")
        patience.failed()
        self._trust[name] = patience, why

    def _forward(self, requirements: Requirements, element: ComputingElement) -> Forwarded | None:
        script = self._script(element)
        name = requirements, element, script.version if script else None
        if name not in self._forwarded or (script and _is_old(self._forwarded[name], script)):
            self._forwarded[name] = self._looked_at(requirements, element)
        return self._forwarded[name]

    def _script(self, element: ComputingElement) -> ScriptAnswers | None:
        endpoint = self._endpoints.to(element.site, element.ce, element.dispatcher)
        return endpoint.script if endpoint else None

    def _avoided(self, requirements: Requirements, element: ComputingElement, found: Forwarded) -> Avoidance:
        """Return the reason in `found` to send no pilots for these requirements to an element.

        If that is a missing answer of the site's mapping script, the question is queued on behalf of the jobs' owner.
        """
        script = self._script(element)
        if script and found.question:
            script.want(found.question, (requirements.vo, requirements.owner))
        return Avoidance("BACKOFF", found.avoided)

    def _looked_at(self, requirements: Requirements, element: ComputingElement) -> Forwarded | None:
        endpoint = self._endpoints.to(element.site, element.ce, element.dispatcher)
        if endpoint is None:
            return None
        try:
            return forward(requirements, element, endpoint.request(element), endpoint.mapping)
        except Rejected as error:
            log.warning("requirements not forwarded", site=element.site, ce=element.ce, reason=str(error))
            return None


def _is_old(found: Forwarded | None, script: ScriptAnswers) -> bool:
    """Return whether a mapping script has given another answer since these requirements were judged with the result `found`."""
    if found is None or not found.question:
        return False
    return why_avoided(script.answers.get(found.question)) != found.avoided


def _name(pilot: NewPilot) -> Name:
    return CeId(pilot.site, pilot.ce), pilot.asks
