"""The attributes of its node that a pilot measures and reports."""

from collections.abc import Callable

from wms.jobdesc.gpus import ATTRIBUTE
from wms.site import Told

MEASURED = frozenset(
    {
        "gluehostname",
        "gluehostmainmemoryramsize",
        "gluehostarchitecturesmpsize",
        "gluehostarchitectureplatformtype",
        "gluehostprocessorclockspeed",
        "gluehostoperatingsystemname",
        "gluehostoperatingsystemrelease",
        "gpunumber",
        "gpumemory",
        "gpucapability",
        "gpuname",
        "gpucudaversion",
        "wmscontainers",
        "wmsisolation",
        "wmslimits",
        "freedisk",
    }
)
"""Attributes, in lower case, that pilots measure on nodes. A pilot may be sent to an element whose ad lacks one, to measure it."""

_GPUS = ATTRIBUTE.lower()

POLICIES = frozenset(
    {"maxram", "numberofprocessors", "gluecepolicymaxwallclocktime", "gluecepolicymaxcputime"}
)
"""Attributes, in lower case, that a pilot may request of any batch system, unless the element's ad states their value."""

PLACEHOLDER = 999_999_999
"""The value that ads give for an unknown limit. Expressions read it as it is; the planner treats the attribute as missing."""

IN_OWN_WORDS = frozenset({"gluehostoperatingsystemname", "gluehostoperatingsystemrelease"})
"""Attributes, in lower case, whose values each site names in its own way. The value in the element's ad overrides the pilot's."""

_OF_ONE_NODE = frozenset({"freedisk", "gluehostname", "gluehostprocessorclockspeed"})
_MEMORY = "gluehostmainmemoryramsize"
_MEMORY_STEP_MB = 1_000


def with_gpus(node: Told, change: Callable[[int], int]) -> Told:
    """Return what a pilot tells of its node with another number of GPUs, which `change` makes of the present one; at least 0."""
    return tuple(
        (name, max(0, change(value))) if name == _GPUS and isinstance(value, int) else (name, value)
        for name, value in node
    )


def for_plans(node: Told) -> Told:
    """Return what planning reads of the attributes of a node, so that similar nodes have equal ones.

    Memory is rounded down to 1,000 MB. The name, free disk and the present clock are left out.
    """
    return tuple(
        (name, int(value) // _MEMORY_STEP_MB * _MEMORY_STEP_MB)
        if name == _MEMORY and isinstance(value, int | float)
        else (name, value)
        for name, value in node
        if name not in _OF_ONE_NODE
    )
