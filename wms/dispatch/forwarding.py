"""Divides a job's requirements at a computing element: its ad decides some, its batch system is asked for some, the node decides the rest.

The planner of pilots and `wms why` call the same function, so the explanation agrees with the plan.
"""

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wms.classad.ad import Ad, as_value
from wms.classad.expression import Expression
from wms.classad.folding import constant
from wms.classad.match import NOTHING
from wms.classad.reduce import Sketch, decided, left_by
from wms.classad.tree import split
from wms.dispatch.mapping import ExtendedRequest, HostMapping, Kind
from wms.dispatch.mapping_script import ANSWERS_TOLD, WAITS, MappingScript, Outcome, ScriptedMapping
from wms.dispatch.port import Request
from wms.errors import Rejected
from wms.ids import CeId
from wms.matching.ads import job_ad, job_attributes, resource_ad, resource_sketch
from wms.matching.grouping import Requirements
from wms.provisioning.host_requirements import HostTerm, Plain, UncoveredTerm, host_requirements_of
from wms.provisioning.pilot_class import PilotClass, class_fits
from wms.site import ComputingElement, Told, Value

_LONGEST, _LARGEST = 255, 2**53


class HostRequestTerms(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How hosts are requested at a computing element: what all its pilots request, and the site's rules for requesting more."""

    kind: Kind
    rules: Mapping[str, str] = {}
    walltime_seconds: int = 0
    constraint: str = ""
    gres: str = ""
    attributes: Mapping[str, str] = {}
    script: MappingScript | None = None
    """The attributes that the site's mapping script (a program that chooses batch options) decides, and the options it may give; None: no script."""
    answers: Mapping[str, Outcome] = {}
    """The latest answers of the mapping script, by the JSON text of the question."""

    def mapping(self, answers: Mapping[str, Outcome] | None = None) -> HostMapping:
        """Return the rules that turn requirements on hosts into options of the batch system.

        If `answers` is given, it is used in place of the stored answers of the mapping script; its owner may add answers later. Raise Rejected for a
        malformed rule.
        """
        if self.script is None:
            return HostMapping(self.kind, self.rules)
        answers = self.answers if answers is None else answers
        return ScriptedMapping(self.kind, self.rules, self.script, answers)

    def usual(self, element: ComputingElement) -> Request:
        """Return what every pilot requests at the computing element: the cores and memory in its ad, for the lifetime of a pilot."""
        return Request(
            cores=element.cores_per_pilot,
            memory_mb=element.memory_mb,
            walltime_seconds=self.walltime_seconds,
            constraint=self.constraint,
            gres=self.gres,
            attributes=self.attributes,
        )


class Forwarded(Struct, frozen=True, kw_only=True):
    """The requirements of a job at one computing element, divided by who decides them. `request` is what its pilot requests there."""

    request: Request
    decided: tuple[str, ...] = ()
    """The conjuncts of the requirements that the computing element's ad already makes true."""
    hosts: PilotClass | None = None
    """The pilot class (kind of host to request) that the other conjuncts need; None if a usual pilot suffices."""
    question: str = ""
    """The question that the site's mapping script must answer before a pilot can be sent; empty: none."""
    avoided: str = ""
    """Why no pilots are sent for these requirements, in words; empty: pilots are sent."""


def forward(
    requirements: Requirements, element: ComputingElement, usual: Request, mapping: HostMapping | None
) -> Forwarded:
    """Divide the requirements of jobs that may run at a computing element, by who decides them.

    `usual` is what all pilots there request. `mapping` has the rules for requesting more; None if hosts cannot be requested at the element.
    Raise Rejected if the requirements grow too large.
    """
    resource = element.pilot_resource(vo=requirements.vo)
    known = resource_sketch(resource) or Sketch(resource_ad(resource), frozenset())
    whole, own = Expression.parse(requirements.requirements), job_ad(job_attributes(requirements))
    left = host_requirements_of(whole, known, own)
    told = Forwarded(request=usual, decided=_decided(whole, known, own))
    if not left.possible:
        return told
    asked = mapping.ask(usual, left.bounds) if mapping else _unasked(usual, left.bounds)
    if asked.avoided:
        return replace(told, question=asked.question, avoided=asked.avoided)
    unasked = tuple(map(str, (*left.unasked, *asked.unasked)))
    if asked.request == usual and not unasked and class_fits(None, requirements, element):
        return told
    hosts = PilotClass(asked.asked, unasked, granted(asked.bounds, resource_ad(resource)))
    return replace(
        told, request=asked.request, hosts=replace(hosts, sure=class_fits(hosts, requirements, element))
    )


def _decided(whole: Expression, known: Sketch, own: Ad) -> tuple[str, ...]:
    terms = (Expression(term) for term in split("&&", whole.tree))
    return tuple(each.text for each in terms if decided(left_by(each, known, own)))


def _unasked(usual: Request, bounds: Iterable[HostTerm]) -> ExtendedRequest:
    why = "this element is asked for no hosts"
    return ExtendedRequest(usual, unasked=tuple(UncoveredTerm(str(each), why) for each in bounds))


def granted(bounds: Iterable[HostTerm], ad: Ad = NOTHING) -> Told:
    """Return those attributes of a node that meets these bounds which the computing element's ad does not guarantee already.

    A number is a lower bound, as in an ad. If only an upper bound was requested, the number is the upper bound.
    """
    # Lower bounds come last and win, since most expressions compare with them.
    ordered = sorted(bounds, key=lambda each: each.relation not in ("<=", "<"))
    known = {
        each.attribute: _granted(each, _value(ad, each.attribute))
        for each in ordered
        if _is_usual(each.value)
    }
    return tuple(sorted((name, value) for name, value in known.items() if value is not None))


def _is_usual(value: Plain) -> bool:
    """Return whether a text is short enough, or a number small enough, for a pilot to report it as an attribute of its node."""
    return len(value) <= _LONGEST if isinstance(value, str) else abs(value) < _LARGEST


def _value(ad: Ad, name: str) -> Any:
    tree = ad.tree(name)
    return as_value(tree) if tree is not None and constant(tree) else None


def _granted(bound: HostTerm, said: Any) -> Value | None:
    """Return a value that meets a bound; None if `said`, the value in the element's ad, already meets it."""
    value = bound.value
    if bound.relation == "member":
        names = tuple(str(each) for each in said) if isinstance(said, tuple) else ()
        return None if str(value).lower() in map(str.lower, names) else (*names, str(value))
    if isinstance(value, bool | str) or bound.relation == "==":
        return None if said == value else value
    met = _beyond(value, bound.relation)
    if isinstance(said, int | float) and not isinstance(said, bool):
        return None if (said >= met if bound.relation in (">=", ">") else said <= met) else met
    return met


def _beyond(value: float, relation: str) -> int | float:
    """Return the number nearest to `value` that meets a bound with this relation, such as ">"."""
    step = {">": 1, "<": -1}.get(relation, 0)
    if isinstance(value, int) or not step:
        return value + step
    return math.nextafter(value, math.inf * step)


class ForwardingRules:
    """The rules of all computing elements for requesting hosts. `terms` has the `HostRequestTerms` of each element as JSON."""

    def __init__(self, terms: Mapping[CeId, str]) -> None:
        self._terms = terms

    def forward(self, requirements: Requirements, element: ComputingElement) -> Forwarded | None:
        """Divide the requirements of jobs that may run at a computing element, by who decides them; None if they grow too large.

        At an element without an entry in `terms`, no hosts can be requested.
        """
        text = self._terms.get(element.ce_id)
        terms, mapping = _endpoint(text) if text else (None, None)
        usual = terms.usual(element) if terms else Request()
        try:
            found = forward(requirements, element, usual, mapping)
        except Rejected:
            return None
        # Older answers of the script are not stored, so pilots may be sent there.
        is_known = found.avoided != WAITS or (terms is not None and len(terms.answers) < ANSWERS_TOLD)
        return found if is_known else replace(found, avoided="")


@lru_cache(maxsize=1_024)
def _endpoint(text: str) -> tuple[HostRequestTerms | None, HostMapping | None]:
    """Decode the terms of a computing element; return them and the rules for requesting hosts.

    Both are None if they cannot be decoded, as when a newer version of the program wrote them.
    """
    try:
        terms = msgspec.json.decode(text, type=HostRequestTerms)
        return terms, terms.mapping()
    except (msgspec.DecodeError, Rejected):
        return None, None
