"""Separates, in a site's requirements, the rule on the number of jobs from the requirements on single jobs. The ad has a field for the rule.

Terms that use the job counts of `wms.matching.ad_limits` make up the rule. The other terms are about jobs. A term with both belongs to the rule. In
the rule, all attributes of jobs are undefined. If limits are configured as well, SAM-Grid's terms are added. If the rule has only these usual terms,
none is written: the limits are numbers in the ad.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from msgspec.structs import replace

from wms.classad.expression import Expression
from wms.classad.tree import Node, chain, split
from wms.matching.ad_limits import STATED, counts, mentions_counts
from wms.site import ComputingElement

USUAL = {
    "max_jobs": "CurMatches < MaxJobs",
    "max_submitting_jobs": "JobsMatchedSinceLastAdvertisement + CurrentSubmittingJobs < MaxSubmittingJobs",
}
"""SAM-Grid's term for each limit: by the name of the limit, the expression that must be true."""


def with_rule(
    element: ComputingElement, attributes: Mapping[str, Any], requirements: str
) -> tuple[ComputingElement, str]:
    """Return the computing element with its limits, counts and rule, and the requirements without the rule.

    `attributes` of the ad may state limits and counts too; such limits hold only if the rule uses them. Raise Rejected if the
    requirements cannot be parsed.
    """
    stated = _with_numbers_of(attributes, element)
    if not mentions_counts(requirements):
        return stated, requirements
    terms = split("&&", Expression.parse(requirements, "requirements").tree)
    own = [each for each in terms if counts(each)]
    rule = {Expression(each).text: each for each in (*own, *_usual(element))}
    is_usual = rule.keys() == {Expression(each).text for each in _usual(stated)}
    about_jobs = [each for each in terms if not counts(each)]
    return replace(stated, rule="" if is_usual else _joined(rule.values())), _joined(about_jobs)


def _with_numbers_of(attributes: Mapping[str, Any], element: ComputingElement) -> ComputingElement:
    """Return the element with limits and counts from `attributes`, where the element itself has none."""
    said = {name.lower(): value for name, value in attributes.items()}
    known = {
        field: value
        for name, field in STATED.items()
        if not getattr(element, field) and type(value := said.get(name.lower())) is int and value > 0
    }
    return replace(element, **known) if known else element


def _usual(element: ComputingElement) -> list[Node]:
    """Return the terms of SAM-Grid's rule for the limits that the element has."""
    return [term for field, term in _usual_terms().items() if getattr(element, field)]


@cache
def _usual_terms() -> Mapping[str, Node]:
    return {field: Expression.parse(text).tree for field, text in USUAL.items()}


def _joined(terms: Iterable[Node]) -> str:
    terms = list(terms)
    return str(Expression(chain("&&", terms))) if terms else ""
