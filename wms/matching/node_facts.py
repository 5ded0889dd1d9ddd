"""What a pilot reports of its node with every request: measured attributes, and which job requirements the node does not meet."""

import hashlib
from collections.abc import Callable

from wms.jobdesc.gpus import ATTRIBUTE
from wms.site import Told

MEASURED = frozenset(
    {
        "gluehostmainmemoryramsize",
        "gluehostarchitecturesmpsize",
        "gluehostarchitectureplatformtype",
        "gluehostprocessorclockspeed",
        "gluehostoperatingsystemname",
        "gluehostoperatingsystemrelease",
        "gpunumber",
        "gpumemory",
        "gpucapability",
        "freedisk",
    }
)
"""Attributes, in lower case, that pilots measure on every node. A pilot may be sent to an element whose ad lacks one, to measure it."""

_GPUS = ATTRIBUTE.lower()

POLICIES = frozenset(
    {"maxram", "numberofprocessors", "gluecepolicymaxwallclocktime", "gluecepolicymaxcputime"}
)
"""Attributes, in lower case, that a pilot may request of any batch system, unless the element's ad states their value."""

PLACEHOLDER = 999_999_999
"""The value that ads give for an unknown limit. Expressions read it as it is; the planner treats the attribute as missing."""

IN_OWN_WORDS = frozenset({"gluehostoperatingsystemname", "gluehostoperatingsystemrelease"})
"""Attributes, in lower case, whose values each site names in its own way. The value in the element's ad overrides the pilot's."""

NOTHING_EVALUATED = "*"
"""What a pilot that cannot evaluate any expression reports in place of hashes of requirements."""


def with_gpus(node: Told, change: Callable[[int], int]) -> Told:
    """Return what a pilot tells of its node with another number of GPUs, which `change` makes of the present one; at least 0."""
    return tuple(
        (name, max(0, change(value))) if name == _GPUS and isinstance(value, int) else (name, value)
        for name, value in node
    )


def wish(requirements: str, attributes: str = "") -> str:
    """Return the hash, of 24 hexadecimal digits, by which a pilot reports requirements that its node does not meet.

    The arguments are the canonical texts of the job's requirements and attributes.
    """
    return hashlib.sha256(f"{requirements}\n{attributes}".encode()).hexdigest()[:24]


def refuses(unfit: tuple[str, ...], requirements: str, attributes: str = "") -> bool:
    """Return whether a pilot would return a job with these requirements. `unfit` are the hashes (`wish`) that the pilot reported."""
    if not unfit or not requirements:
        return False
    return NOTHING_EVALUATED in unfit or wish(requirements, attributes) in unfit
