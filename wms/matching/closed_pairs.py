"""Pairs of an attribute of jobs and a value, such as ("owner", "alice"), by which a site or computing element is closed to jobs."""

from collections.abc import Callable
from typing import Literal

from wms.matching.canary import is_canary
from wms.matching.grouping import Requirements
from wms.site import folded

Attribute = Literal["owner", "owner_group", "vo", "setup", "job_type", "tag", "any"]
Pair = tuple[Attribute | Literal["work"], str]
"""An attribute and its value; ("any", "") stands for every job, ("work", "") for every job but canaries (small test jobs)."""
WORK: Pair = ("work", "")
"""The pair that is closed at avoided computing elements: no jobs but canaries (small test jobs) may start there."""
NAMED: frozenset[Attribute] = frozenset({"job_type", "tag"})
"""The attributes whose values are compared without regard to case."""

VALUES: dict[Attribute | Literal["work"], Callable[[Requirements], tuple[str, ...]]] = {
    "owner": lambda r: (r.owner,),
    "owner_group": lambda r: (r.owner_group,),
    "vo": lambda r: (r.vo,),
    "setup": lambda r: (r.setup,),
    "job_type": lambda r: folded(r.job_types),
    "tag": lambda r: folded(r.tags),
    "any": lambda _: ("",),
    "work": lambda r: () if is_canary(r) else ("",),
}


def pairs(requirements: Requirements) -> frozenset[Pair]:
    """Return all pairs of attribute and value that jobs with these requirements have.

    If any of them is closed, the jobs may not start.
    """
    return frozenset((name, value) for name, values in VALUES.items() for value in values(requirements))


def values(requirements: Requirements, attribute: Attribute) -> tuple[str, ...]:
    """Return the values that jobs with these requirements have for one attribute; a job may have several tags."""
    return VALUES[attribute](requirements)


def has(requirements: Requirements, pair: Pair) -> bool:
    """Return whether jobs with these requirements have this pair of attribute and value, so that they may not start where it is closed."""
    name, value = compared(pair)
    return value in VALUES[name](requirements)


def compared(pair: Pair) -> Pair:
    """Return the pair as it is compared: values of some attributes without regard to case."""
    name, value = pair
    return (name, value.casefold()) if name in NAMED else pair
