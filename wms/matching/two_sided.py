"""The two-sided ClassAd match of a job and a resource: requirements of both sides, rank, and which terms fail."""

from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

from msgspec.structs import replace

from wms.classad.ad import Ad
from wms.classad.explain import ExplainedTerm, explain
from wms.classad.expression import Expression
from wms.classad.match import number, satisfied
from wms.classad.reduce import Sketch, could, could_want, own_part
from wms.classad.tree import Node, chain, split
from wms.matching.ads import (
    KEPT_LONG,
    LONG_TEXT,
    JobAttributes,
    job_ad,
    job_attributes,
    open_requirements,
    resource_ad,
    resource_sketch,
    site_ad,
    wish,
)
from wms.matching.grouping import Requirements
from wms.site import Resource, ad_of, forwards_of

Asked: TypeAlias = tuple[str, JobAttributes] | None
"""A job's requirements as text, and the job attributes that the requirements may reference; None: the job has no requirements."""

_TOLD = 3
_KEPT = 65_536
_REQUIREMENTS = frozenset({"requirements"})


def asked(requirements: Requirements) -> Asked:
    """Return the ClassAd requirements of a queue's jobs with the jobs' attributes; None if there are no requirements."""
    return (requirements.requirements, job_attributes(requirements)) if requirements.requirements else None


def job_wants(part: Asked, at: Resource) -> bool:
    """Return whether a job's requirements (`part`) are true of a resource; for a pilot not yet sent, whether they could be."""
    if part is None:
        return True
    wanted = wish(*part)
    if satisfied(wanted, resource_ad(at, wanted.other), job_ad(part[1])):
        return True
    return forwards_of(at) is not None and not _unmet(part, at)


def site_wants(job: JobAttributes, at: Resource) -> bool:
    """Return whether the requirements in a resource's ad are true of a job; for a pilot not yet sent, whether they could be.

    Limits by job counters (the element's rule) are not part of these requirements.
    """
    if not site_ad(ad_of(at)).demands:
        return True
    ad = resource_ad(at, _REQUIREMENTS)
    if ad.requirements is None or satisfied(ad.requirements, job_ad(job, ad.requirements.other), ad):
        return True
    known = resource_sketch(at, _REQUIREMENTS)
    left = known and open_requirements(ad, known)
    return left is not None and could_want(left, job_ad(job, left.other))


def job_says(part: Asked, at: Resource) -> str:
    """Return a text with the terms of a job's requirements (`part`) that are not true of a resource, and the values they read."""
    return _listed([] if part is None else _unmet(part, at))


def site_says(job: JobAttributes, at: Resource) -> str:
    """Return a text with the terms of a resource's requirements that are not true of a job, and the values they read."""
    ad = resource_ad(at, _REQUIREMENTS)
    required = ad.expression("requirements")
    return _listed(
        [] if required is None else _failing(required, ad, job_ad(job), resource_sketch(at, _REQUIREMENTS))
    )


def without_failing(requirements: Requirements, at: Resource) -> Requirements | None:
    """Return requirements without those terms of the ClassAd expression that are not true of a resource; None if all are true."""
    part = asked(requirements)
    if part is None:
        return None
    terms = _judged(part, at)
    kept = [term for term, unmet in terms if unmet is None]
    if len(kept) == len(terms):
        return None
    return replace(requirements, requirements=Expression(chain("&&", kept)).text if kept else "")


def terms_of(requirements: Requirements) -> list[str]:
    """Return the terms (parts between `&&`) of a queue's ClassAd requirements, as canonical texts."""
    text = requirements.requirements
    return [Expression(term).text for term in split("&&", Expression.parse(text).tree)] if text else []


def job_rank(requirements: Requirements, at: Resource) -> float | None:
    """Return the value of a job's Rank expression for a resource; 0 if it is no number, and None if the job has no Rank."""
    if not requirements.rank:
        return None
    job = job_attributes(requirements)
    rank = wish(requirements.rank, job)
    return number(rank, resource_ad(at, rank.other), job_ad(job))


def unmet(requirements: str, own: Ad, other: Ad) -> list[tuple[Node, ExplainedTerm]]:
    """Return the terms of `requirements` that the ad `other` does not meet, each with its explanation.

    The expression is one of the ad `own`, whose attributes it may reference.
    """
    return [(term, each) for term, each in _explained(requirements, own, other) if not each.met]


def _explained(requirements: str, own: Ad, other: Ad) -> Iterable[tuple[Node, ExplainedTerm]]:
    """Yield the terms of an expression of the ad `own`, each with its value over the other ad."""
    whole = Expression.parse(requirements)
    return zip(split("&&", whole.tree), explain(whole, other, own), strict=True)


def _unmet(part: tuple[str, JobAttributes], at: Resource) -> list[ExplainedTerm]:
    return [unmet for _, unmet in _judged(part, at) if unmet is not None]


def _judged(part: tuple[str, JobAttributes], at: Resource) -> tuple[tuple[Node, ExplainedTerm | None], ...]:
    """Return a job's conjuncts. Each one that is not true at the resource has an explanation, others have None.

    For a pilot not yet sent, conjuncts that its node may still make true have None too.
    """
    # What it looks at by the job's own attributes is looked at, too.
    names = Expression.parse(part[0]).names | wish(*part).other
    judgement = _judgement if len(part[0]) <= LONG_TEXT else _long_judgement
    return judgement(part, resource_ad(at, names), resource_sketch(at, names))


def _judgement_of(
    part: tuple[str, JobAttributes], other: Ad, known: Sketch | None
) -> tuple[tuple[Node, ExplainedTerm | None], ...]:
    own = job_ad(part[1])
    return tuple(
        (term, None if each.met or (known and could(Expression(term), known, own)) else each)
        for term, each in _explained(part[0], own, other)
    )


# Remembered: elements come by the thousand, and in what a job looks at many of them are alike.
_judgement = lru_cache(maxsize=_KEPT)(_judgement_of)
_long_judgement = lru_cache(maxsize=KEPT_LONG)(_judgement_of)


def _failing(required: Expression, own: Ad, other: Ad, known: Sketch | None) -> list[ExplainedTerm]:
    """Return the conjuncts of an ad's requirements that are not true of a job and, before a pilot is sent, could not be."""
    terms = zip(split("&&", required.tree), explain(required, other, own), strict=True)
    return [
        each for term, each in terms if not each.met and not (known and _may(Expression(term), known, other))
    ]


def _may(term: Expression, known: Sketch, job: Ad) -> bool:
    left = own_part(term, known)
    return left is not None and could_want(left, job)


def _listed(failing: list[ExplainedTerm]) -> str:
    more = len(failing) - _TOLD
    return "; ".join(map(str, failing[:_TOLD])) + (f"; and {more} more" if more > 0 else "")
