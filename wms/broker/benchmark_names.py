"""Names of benchmarks: users, sites and versions of GLUE write one benchmark in several ways."""

import re
from collections.abc import Mapping
from functools import lru_cache
from math import isfinite
from typing import Any, Final

from wms.glue.glue1 import GlueHosts
from wms.glue.quantity import known

PREFIX: Final = "GlueHostBenchmark"
"""The beginning of the attributes of an ad that are results of benchmarks."""
HIGHEST: Final = 1e9
"""The highest result that is believed."""

_SYNONYMS = {
    "si00": "specint2000",
    "specintbase2000": "specint2000",
    "cint2000": "specint2000",
    "sf00": "specfp2000",
    "specfpbase2000": "specfp2000",
    "cfp2000": "specfp2000",
    "hs06": "hepspec06",
    "hepspec2006": "hepspec06",
    "hs23": "hepscore23",
}
_NOT_PLAIN = re.compile(r"[^a-z0-9]+")


@lru_cache(maxsize=10_000)
def benchmark_key(name: str) -> str:
    """Return the form in which names of benchmarks are compared: `NAS-LU-C` and `nas_lu_c` are one, `SF00` is `specFP2000`."""
    plain = _NOT_PLAIN.sub("", name.casefold())
    return _SYNONYMS.get(plain, plain)


def is_result(value: object) -> bool:
    """Return whether a value is a result: a positive number that can be believed."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and 0 < value <= HIGHEST
        and isfinite(value)
    )


def named_benchmarks(hosts: GlueHosts) -> dict[str, float]:
    """Return the results that GLUE has fields for, by their keys."""
    told = {"specint2000": known(hosts.si00), "specfp2000": known(hosts.sf00), "hepspec06": hosts.hepspec06}
    return {key: float(result) for key, result in told.items() if result is not None and is_result(result)}


def advertised_benchmarks(attributes: Mapping[str, Any]) -> dict[str, float]:
    """Return the results among the attributes of an ad (`GlueHostBenchmark...`), by their keys."""
    return {
        key: float(result)
        for name, result in attributes.items()
        if name.startswith(PREFIX) and is_result(result) and (key := benchmark_key(name.removeprefix(PREFIX)))
    }
