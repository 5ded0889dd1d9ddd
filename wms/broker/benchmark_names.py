"""Names of benchmarks: users, sites and versions of GLUE spell the same benchmark in several ways."""

import re
from collections.abc import Mapping
from functools import lru_cache
from math import isfinite
from typing import Any, Final

from wms.glue.glue1 import GlueHosts
from wms.glue.quantity import known

PREFIX: Final = "GlueHostBenchmark"
"""Attributes of a computing element's ad whose names begin so are benchmark results."""
HIGHEST: Final = 1e9
"""The highest benchmark result that is accepted; a higher one is ignored as an error of the site."""

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
    """Return the canonical spelling of a benchmark's name, by which names are compared.

    It has lower-case letters and digits only, and one name for synonyms: `NAS-LU-C` gives `nasluc`, and `SF00` gives
    `specfp2000`.
    """
    plain = _NOT_PLAIN.sub("", name.casefold())
    return _SYNONYMS.get(plain, plain)


def is_result(value: object) -> bool:
    """Return whether a value can be a benchmark result: a finite number over 0 and at most `HIGHEST`. A Boolean is none."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and 0 < value <= HIGHEST
        and isfinite(value)
    )


def named_benchmarks(hosts: GlueHosts) -> dict[str, float]:
    """Return the results of the benchmarks that GLUE has fields of their own for (SI00, SF00, HEP-SPEC06), by `benchmark_key`.

    Values that cannot be results (`is_result`) are left out.
    """
    told = {"specint2000": known(hosts.si00), "specfp2000": known(hosts.sf00), "hepspec06": hosts.hepspec06}
    return {key: float(result) for key, result in told.items() if result is not None and is_result(result)}


def advertised_benchmarks(attributes: Mapping[str, Any]) -> dict[str, float]:
    """Return the benchmark results among the attributes of an ad (`GlueHostBenchmark...`), by `benchmark_key`.

    `attributes` are the ad's values by their names. Values that cannot be results (`is_result`) are left out.
    """
    return {
        key: float(result)
        for name, result in attributes.items()
        if name.startswith(PREFIX) and is_result(result) and (key := benchmark_key(name.removeprefix(PREFIX)))
    }
