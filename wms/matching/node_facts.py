"""What a pilot reports of its node with every request: measurements, and requirements that the node cannot run."""

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
"""What pilots find out themselves wherever they are: of what an element's ad lacks of these, a pilot can be sent to look."""

POLICIES = frozenset(
    {"maxram", "numberofprocessors", "gluecepolicymaxwallclocktime", "gluecepolicymaxcputime"}
)
"""What every batch system can be asked for, and what an element's ad decides where it says it."""

PLACEHOLDER = 999_999_999
"""What ads say of a limit that is not known: expressions see it, and the planner asks the batch system as if it were not there."""

IN_OWN_WORDS = frozenset({"gluehostoperatingsystemname", "gluehostoperatingsystemrelease"})
"""What sites name in words of their own: where an element's ad says it, that goes before what its pilots see."""

NOTHING_EVALUATED = "*"
"""Told by a pilot that can evaluate no expression at all."""


def wish(requirements: str, attributes: str = "") -> str:
    """Return the name of what a job requires, from the canonical texts of its requirements and of its own attributes."""
    return hashlib.sha256(f"{requirements}\n{attributes}".encode()).hexdigest()[:24]


def refuses(unfit: tuple[str, ...], requirements: str, attributes: str = "") -> bool:
    """Tell whether a pilot that told so much would give a job with such requirements back."""
    if not unfit or not requirements:
        return False
    return NOTHING_EVALUATED in unfit or wish(requirements, attributes) in unfit
