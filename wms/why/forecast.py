"""Forecast of a waiting job's start, from its position in its task queue and the recent rate at which jobs of the queue are matched.

The draw is not first in, first out. It draws one of a queue's user priorities, then a random one of that priority's ten oldest
jobs. So a job with `a` older jobs of its priority is offered after max(0, a - 9) draws of the priority at the earliest. Then each
draw takes it with a chance of one in ten. The law of the draw gives the rate of its priority; the matchers' counts give the rate
of the queue. For many jobs not yet drawn only counts and ids are known. Hence `least` and `most` older jobs.

The interval: the number K of draws of the queue has a mean and a variance. Times between draws are taken as exponential, so that
K of them are nearly a gamma of shape E[K]^2 / (E[K] + Var K). The rate itself is a gamma of the counts. The quotient of the two
is an F distribution, whose quantiles are Paulson's. New jobs, sites, shares and limits are not foreseen.
"""

from collections.abc import Sequence
from math import exp, log, sqrt

from msgspec import Struct

from wms.matching.draw_law import Law
from wms.matching.queue_stats import Level, Served
from wms.matching.shares import real_priority
from wms.queue_index.waiting_jobs import OLDEST

LEAST_COUNTED = 0.5
_STEPS = 400
_NORMAL_90 = 1.2815515655446004


class StartForecast(Struct, frozen=True, kw_only=True):
    """The position of a waiting job in its task queue, and when a pilot will be offered it if nothing changes.

    With a chance of 80 % the job is offered between `earliest_seconds` and `latest_seconds` from now. All times are None if no
    job of the queue was matched recently.
    """

    older_least: int
    """The smallest possible number of older jobs with the same user priority in the task queue; `older_most` is the largest."""
    older_most: int
    level_chance: float
    """The share, 0 to 1, of the jobs drawn from the queue that have this job's user priority."""
    matched_per_minute: float | None = None
    """How many jobs of the queue were recently matched per minute; None if none was."""
    earliest_seconds: float | None = None
    likely_seconds: float | None = None
    latest_seconds: float | None = None
    """The upper end of the 80 % interval, in seconds from now, in which the job is offered; None if it cannot be bounded."""


def forecast(
    job_id: int, user_priority: float, levels: Sequence[Level], served: Served, law: Law
) -> StartForecast | None:
    """Return a waiting job's position and expected start; None if no job with its user priority waits in the queue.

    `levels` are the queue's waiting jobs by user priority, `served` its recent matches, and `law` how matchers draw.
    """
    mine = next((n for n, level in enumerate(levels) if level.user_priority == user_priority), None)
    if mine is None or not levels[mine].count:
        return None
    least, most = older(job_id, levels[mine])
    chance = level_chance(mine, levels, law)
    told = StartForecast(older_least=least, older_most=most, level_chance=round(chance, 6))
    counted, seconds = _evidence(served)
    if counted < LEAST_COUNTED or chance <= 0:
        return told
    soonest, latest = (_draws_of_queue(each, levels[mine].count, chance) for each in (least, most))
    return StartForecast(
        older_least=least,
        older_most=most,
        level_chance=told.level_chance,
        matched_per_minute=round(60 * counted / seconds, 3),
        earliest_seconds=_rounded(_quantile(soonest, counted, seconds, -_NORMAL_90)),
        likely_seconds=_middle(soonest, latest, counted, seconds),
        latest_seconds=_rounded(_quantile(latest, counted, seconds, _NORMAL_90)),
    )


def older(job_id: int, level: Level) -> tuple[int, int]:
    """Return the least and the most number of jobs in a level that are older than the job.

    A level is the waiting jobs of one user priority. The two numbers are equal if its ids are consecutive.
    """
    most = max(0, min(job_id - level.oldest, level.count - 1))
    least = max(0, level.count - 1 - max(0, level.newest - job_id))
    return min(least, most), most


def level_chance(mine: int, levels: Sequence[Level], law: Law) -> float:
    """Return the chance that a job drawn from the queue has the user priority of `levels[mine]`.

    Under the law `proportional` it is this level's share of all weights. Under `dirac` the smallest of n independent U/p exceeds t with probability
    (1 - p t)^n. The chance is then the integral of its hazard over the survival of all, in steps of equal probability of the proportional law. The
    two laws differ little.
    """
    weighed = [(level.count, real_priority(level.user_priority)) for level in levels if level.count]
    count, weight = levels[mine].count, real_priority(levels[mine].user_priority)
    whole = sum(n * p for n, p in weighed)
    if law == "proportional" or len(weighed) == 1:
        return count * weight / whole
    total = 0.0
    for step in range(_STEPS):
        share = (step + 0.5) / _STEPS
        t = -log(share) / whole
        if all(p * t < 1 for _, p in weighed):
            alive = exp(sum(n * log(1 - p * t) for n, p in weighed))
            total += count * weight / (1 - weight * t) * alive / (share * whole)
    return min(1.0, total / _STEPS)


def _evidence(served: Served) -> tuple[float, float]:
    """Return a count and its seconds with the same relative certainty as the recent matches, which count less the older they are.

    The variance of the returned count equals the count, as for a Poisson distribution.
    """
    age = max(1e-9, served.watched_seconds / served.fading_seconds)
    kept = 1 - exp(-age)
    spread = (1 - exp(-2 * age)) / (2 * kept)
    return served.faded_count / spread, served.fading_seconds * kept / spread


Moments = tuple[float, float]
"""The mean and the variance of a random number."""


def draws_of_level(older_jobs: int, count: int) -> Moments:
    """Return mean and variance of the number of draws until one given job of a user priority is drawn, this last draw included.

    `older_jobs` is the number of older jobs of the same user priority, and `count` the number of all its jobs.
    """
    first = max(0, older_jobs - (OLDEST - 1))
    in_play = count - first
    # P(not drawn by draw i): a chance of one in ten with more than ten jobs left, then equal chances for the last ten.
    tail = min(OLDEST, in_play)
    steady = min(in_play - tail, 300)
    left = [(1 - 1 / OLDEST) ** i for i in range(steady)]
    last = (1 - 1 / OLDEST) ** steady
    left += [last * (1 - i / tail) for i in range(tail)]
    mean = sum(left)
    square = sum((2 * i + 1) * each for i, each in enumerate(left))
    return first + mean, square - mean * mean


def _draws_of_queue(older_jobs: int, count: int, chance: float) -> Moments:
    mean, variance = draws_of_level(older_jobs, count)
    return mean / chance, mean * (1 - chance) / chance**2 + variance / chance**2


def _quantile(draws: Moments, counted: float, seconds: float, normal: float) -> float | None:
    """Return a quantile of the time until the job is drawn, in seconds; None if it has no bound. `normal` is the normal deviate of the quantile.

    `draws` are the mean and variance of the draws until then. `counted` draws were observed in `seconds`.
    """
    mean, variance = draws
    shape = mean * mean / (mean + variance)
    a, b = 1 / (9 * shape), 1 / (9 * counted)
    bottom = (1 - b) ** 2 - normal**2 * b
    if bottom <= 0:
        return None
    inside = ((1 - a) * (1 - b)) ** 2 - bottom * ((1 - a) ** 2 - normal**2 * a)
    root = ((1 - a) * (1 - b) + (1 if normal > 0 else -1) * sqrt(max(0.0, inside))) / bottom
    return seconds * mean / counted * float(max(0.0, root)) ** 3


def _middle(soonest: Moments, latest: Moments, counted: float, seconds: float) -> float | None:
    ends = [_quantile(each, counted, seconds, 0.0) for each in (soonest, latest)]
    known = [each for each in ends if each is not None]
    return _rounded(sum(known) / 2) if len(known) == 2 else None


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
