"""Facts on a node that its pilot reports with every request: measured attributes, and requirements that the node does not meet."""

import hashlib

MEASURED = frozenset(
    {
        "gluehostmainmemoryramsize",
        "gluehostarchitecturesmpsize",
        "gluehostarchitectureplatformtype",
        "gluehostprocessorclockspeed",
        "gluehostoperatingsystemname",
        "gluehostoperatingsystemrelease",
        "gpunumber",
        "freedisk",
    }
)
"""Attributes, in lower case, that pilots measure on every node. A pilot can be sent to measure those that an element's ad lacks."""

POLICIES = frozenset(
    {"maxram", "numberofprocessors", "gluecepolicymaxwallclocktime", "gluecepolicymaxcputime"}
)
"""Attributes, in lower case, that every batch system accepts in a request, unless the element's ad states a value."""

PLACEHOLDER = 999_999_999
"""The value that ads give for an unknown limit. Expressions read it as it is; the planner treats the attribute as missing."""

IN_OWN_WORDS = frozenset({"gluehostoperatingsystemname", "gluehostoperatingsystemrelease"})
"""Attributes, in lower case, that sites name in their own terms. For these the value in the element's ad overrides the pilot's."""

NOTHING_EVALUATED = "*"
"""The entry reported by a pilot that cannot evaluate any expression."""


def wish(requirements: str, attributes: str = "") -> str:
    """Return the 24-digit hash of a job's requirements, from the canonical texts of the requirements and of the job's attributes."""
    return hashlib.sha256(f"{requirements}\n{attributes}".encode()).hexdigest()[:24]


def refuses(unfit: tuple[str, ...], requirements: str, attributes: str = "") -> bool:
    """Return whether a pilot that reported `unfit` would return a job with these requirements."""
    if not unfit or not requirements:
        return False
    return NOTHING_EVALUATED in unfit or wish(requirements, attributes) in unfit
