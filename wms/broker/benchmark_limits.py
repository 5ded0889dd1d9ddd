"""Limits on advertised benchmark results, so that a site with absurdly high results does not attract every job."""

from collections.abc import Sequence
from statistics import median
from typing import Final

from msgspec.structs import replace

from wms.broker.candidate import Benchmarks, Candidate

FARTHEST: Final = 10.0
"""The largest factor between a benchmark result and its median over all sites. A result beyond it is replaced by the limit."""
LEAST_SITES: Final = 3
"""The least number of sites that must advertise a benchmark before its median is used."""


def believable(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates, in the same order, with each benchmark result limited by `FARTHEST` around the median over all sites.

    A site counts once in the median, with the best of its computing elements. Results of benchmarks that fewer than `LEAST_SITES`
    sites advertise stay as they are. Nothing is changed in place.
    """
    usual = _usual(candidates)
    return [_bounded(each, usual) for each in candidates]


def _usual(candidates: Sequence[Candidate]) -> Benchmarks:
    results: dict[str, dict[str, float]] = {}
    for each in candidates:
        for name, result in each.benchmarks.items():
            by_site = results.setdefault(name, {})
            by_site[each.site] = max(result, by_site.get(each.site, 0.0))
    return {name: median(told.values()) for name, told in results.items() if len(told) >= LEAST_SITES}


def _bounded(candidate: Candidate, usual: Benchmarks) -> Candidate:
    told = candidate.benchmarks
    bounded = {
        name: min(max(result, usual[name] / FARTHEST), usual[name] * FARTHEST) if name in usual else result
        for name, result in told.items()
    }
    return candidate if bounded == told else replace(candidate, benchmarks=bounded)
