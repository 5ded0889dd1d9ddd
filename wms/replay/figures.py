"""Figures of a set of jobs: how long they waited for their start, and how fast they were given to pilots."""

import math
from collections.abc import Iterable, Sequence

import msgspec

from wms.db.timeline import JobTimes


class StartDelays(msgspec.Struct, frozen=True, kw_only=True):
    """How long jobs waited from submission to start, in seconds. Jobs that never started do not count."""

    median: float
    p95: float
    longest: float


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest of the sorted values that at least the fraction `share` of them does not exceed (nearest rank)."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def waits(jobs: Iterable[JobTimes]) -> StartDelays | None:
    """Return how long the jobs waited from submission to start; None if none started."""
    found = sorted(job.wait_seconds for job in jobs if job.wait_seconds is not None)
    if not found:
        return None
    median, p95, longest = (round(quantile(found, share), 3) for share in (0.5, 0.95, 1.0))
    return StartDelays(median=median, p95=p95, longest=longest)


def matches_per_second(jobs: Iterable[JobTimes]) -> float:
    """Return how many jobs a second were first offered to pilots, from the first offer to the last; 0 for fewer than two."""
    offered = sorted(job.offered_at for job in jobs if job.offered_at is not None)
    span = (offered[-1] - offered[0]).total_seconds() if offered else 0.0
    return round((len(offered) - 1) / span, 1) if span else 0.0
