"""A site's own rule of how many jobs may come: parted from its requirements, as an ad has it in a field of its own.

Terms of the requirements that look at the counts of `wms.matching.ad_limits` are the rule; the others are about jobs. A term
that looks at both is of the rule, and takes all that jobs say for undefined. SAM-Grid's rule for the limits that the element
states needs no text: the limits are numbers of the ad.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from msgspec.structs import replace

from wms.classad.expression import Expression
from wms.classad.tree import Node, chain, split
from wms.matching.ad_limits import STATED, counts, mentions_counts
from wms.site import ComputingElement

USUAL = {
    "CurMatches < MaxJobs": "max_jobs",
    "JobsMatchedSinceLastAdvertisement + CurrentSubmittingJobs < MaxSubmittingJobs": "max_submitting_jobs",
}
"""The terms of SAM-Grid's rule, and the limits that they are about."""


def with_limits(element: ComputingElement, requirements: str) -> str:
    """Return requirements to which the limits that are configured hold besides, where they have a rule of their own."""
    if not mentions_counts(requirements):
        return requirements
    usual = (term for term, field in USUAL.items() if getattr(element, field))
    return " && ".join(f"({each})" for each in (requirements, *usual))


def with_rule(
    element: ComputingElement, attributes: Mapping[str, Any], requirements: str
) -> tuple[ComputingElement, str]:
    """Return the element with all that its site says of counts, and the requirements without it.

    Limits and counts may be said by attributes, too. Raises Rejected if the requirements cannot be read.
    """
    said = {name.lower(): value for name, value in attributes.items()}
    known = {
        field: value
        for name, field in STATED.items()
        if not getattr(element, field) and type(value := said.get(name.lower())) is int and value > 0
    }
    if known:
        element = replace(element, **known)
    if not mentions_counts(requirements):
        return element, requirements
    terms = split("&&", Expression.parse(requirements, "requirements").tree)
    counting = [each for each in terms if counts(each)]
    rest = _joined([each for each in terms if each not in counting])
    return replace(element, rule=_unless_usual(element, counting)), rest


def _unless_usual(element: ComputingElement, terms: Sequence[Node]) -> str:
    """Return the rule; nothing if it is SAM-Grid's for the limits that the element states."""
    usual = {text for text, field in _usual().items() if getattr(element, field)}
    return "" if {Expression(each).text for each in terms} == usual else _joined(terms)


@cache
def _usual() -> Mapping[str, str]:
    return {Expression.parse(term).text: field for term, field in USUAL.items()}


def _joined(terms: Sequence[Node]) -> str:
    return str(Expression(chain("&&", list(terms)))) if terms else ""
