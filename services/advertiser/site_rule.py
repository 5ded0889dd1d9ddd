"""Separates a site's rule on how many jobs may come from its requirements on jobs. The rule is a field of the ad.

Terms of the requirements that use the job counts of `wms.matching.ad_limits` make the rule. The other terms are about jobs. A
term with both belongs to the rule, where all attributes of jobs are undefined. For limits that are configured as well, SAM-Grid's
terms are added. If the rule has only these usual terms, none is written: the limits are numbers of the ad.
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
"""The terms of SAM-Grid's rule, by the limit for which each stands."""


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
    """Return the element with the limits and counts of its attributes, where it has none itself."""
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
