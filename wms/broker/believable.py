"""What is believed of advertised benchmarks: a site that tells results beyond all others' draws no jobs by them."""

from collections.abc import Sequence
from statistics import median
from typing import Final

from msgspec.structs import replace

from wms.broker.candidate import Benchmarks, Candidate

FARTHEST: Final = 10.0
"""How many times the median of all sites, or how small a part of it, a result may be. Processors of one time differ less."""
LEAST_SITES: Final = 3
"""From so many sites on the median tells what is usual."""


def believable(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates with results of benchmarks that are at most `FARTHEST` times, and at least that part of, the usual ones.

    A site counts once for a benchmark, with the best of its elements: by many elements it cannot move what is usual.
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
