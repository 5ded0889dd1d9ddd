"""What waits and who asks, in the shape of production: task queues, jobs in them, pilots. The same seed, the same workload.

Plain values that the system and its peers are loaded from alike; nothing here knows either.
"""

import random
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

VO = "lhcb"
GROUPS = ("lhcb_mc", "lhcb_prod", "lhcb_user", "lhcb_data", "lhcb_admin")
SHARING = frozenset({"lhcb_mc", "lhcb_prod"})
"""Groups whose members share their jobs: a private pilot of one serves all of its owners."""
OWNERS = tuple((f"user{n:02d}", GROUPS[n % len(GROUPS)]) for n in range(20))
PLATFORMS = ("x86_64-slc6", "x86_64-el9", "aarch64-el9")
SEGMENTS = ((500, 1), (5_000, 2), (50_000, 4), (300_000, 3))
"""CPU segments, each with how many of ten queues are of it."""
JOB_TYPES = tuple(f"type{n:02d}" for n in range(24))
POPULATION = 10_000
"""Pilots there are; each asks again and again."""
BURST = 20
"""Jobs of one queue that arrive together, so that their ids follow on."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """How large, and how varied."""

    queues: int = 10_000
    waiting: int = 1_000_000
    sites: int = 100
    tags: int = 3
    platforms: int = 3
    segments: tuple[tuple[int, int], ...] = SEGMENTS
    bound: float = 0.3
    """Share of the queues that name a few sites."""
    wide: float = 0.0
    """Share of the queues that name nearly all sites and many platforms, as those of a production system do."""
    spread: float = 1.0
    """Of the sizes of queues: the sigma of their logarithms."""
    cut: float = 1e9
    """No queue is larger than so many times the median one."""

    def site(self, n: int) -> str:
        return f"LCG.Site{n:04d}.org"

    def platform(self, n: int) -> str:
        return PLATFORMS[n] if n < len(PLATFORMS) else f"x86_64-variant{n:02d}"

    def tag(self, n: int) -> str:
        return ("GPU", "MultiProcessor", "LargeMem")[n] if n < 3 else f"tag{n:03d}"


LHCB = Shape(
    queues=498, waiting=871_925, sites=60, platforms=67, bound=0.46, wide=0.54, spread=2.2, cut=8.9,
    segments=(
        (21_600, 41), (43_200, 3), (86_400, 11), (172_800, 41), (259_200, 88), (345_600, 56), (518_400, 10), (691_200, 27),
        (864_000, 5), (1_080_000, 216),
    ),
)  # fmt: skip
"""LHCb's task queues as they were on 28 March 2026, by their numbers: what its simulation asks for runs nearly everywhere,
what its data ask for at one site or two."""


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """What the jobs of a task queue have in common. Empty sets ask for nothing."""

    owner: str
    group: str
    cpu_time: int
    priority: float
    sites: tuple[str, ...] = ()
    banned: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    job_types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    requirements: str = ""
    rank: str = ""
    attributes: dict[str, str | int] = {}


class Pilot(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks for one job. Without an owner it is generic, and without job types it takes all."""

    site: str
    ce: str
    platform: str
    cpu_time: int
    tags: tuple[str, ...] = ()
    job_types: tuple[str, ...] = ()
    owner: str = ""
    group: str = ""


class Jobs(msgspec.Struct, frozen=True):
    """Waiting jobs: number n, counted from 1, is of queue `queue[n - 1]` and has the user priority beside it."""

    queue: NDArray[np.int32]
    priority: NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.queue)


def make_queues(shape: Shape, seed: int = 1) -> list[Queue]:
    """Return distinct queues: three in ten bound to sites, one in ten banning some, half to platforms, few to tags."""
    rng = random.Random(seed)
    sites, tags, platforms = _names(shape)
    segments, weights = zip(*shape.segments, strict=True)
    found: dict[bytes, Queue] = {}
    while len(found) < shape.queues:
        owner, group = rng.choice(OWNERS)
        wide = rng.random() < shape.wide
        wanted = (
            sorted(rng.sample(sites, len(sites) - 2))
            if wide
            else _some(rng, shape.bound / (1 - shape.wide), sites, 5)
        )
        queue = Queue(
            owner=owner,
            group=group,
            cpu_time=rng.choices(segments, weights)[0],
            priority=round(max(0.001, rng.lognormvariate(0, 1) * 10), 4),
            sites=tuple(wanted),
            banned=() if wanted else _some(rng, 0.14, sites, 3),
            platforms=_some(rng, 0.5, platforms, max(2, len(platforms) // 2)),
            job_types=(rng.choice(JOB_TYPES),),
            tags=_some(rng, 0.15, tags, 2),
        )
        found.setdefault(msgspec.json.encode(msgspec.structs.replace(queue, priority=0.0)), queue)
    return list(found.values())


def _names(shape: Shape) -> tuple[list[str], list[str], list[str]]:
    """Return the sites, tags and platforms that there are."""
    return (
        [shape.site(n) for n in range(shape.sites)],
        [shape.tag(n) for n in range(shape.tags)],
        [shape.platform(n) for n in range(shape.platforms)],
    )


def _some(rng: random.Random, share: float, values: Sequence[str], most: int) -> tuple[str, ...]:
    """Return, for that share of the calls, one to `most` of the values, in order; nothing for the others."""
    return tuple(sorted(rng.sample(values, rng.randint(1, most)))) if rng.random() < share else ()


def make_jobs(shape: Shape, seed: int = 2) -> Jobs:
    """Return the waiting jobs: some queues large, most small, none empty; six in ten queues with one priority alone."""
    rng = np.random.default_rng(seed)
    sizes = np.minimum(rng.lognormal(0, shape.spread, shape.queues), shape.cut)
    counts = 1 + rng.multinomial(shape.waiting - shape.queues, sizes / sizes.sum())
    queue = np.repeat(np.arange(shape.queues, dtype=np.int32), counts)
    whole = len(queue) // BURST * BURST
    bursts = queue[:whole].reshape(-1, BURST)
    queue = np.concatenate([bursts[rng.permutation(len(bursts))].ravel(), queue[whole:]])
    levels = rng.integers(1, 10, (shape.queues, 5), dtype=np.int16)
    several = np.where(rng.random(shape.queues) < 0.6, 1, rng.integers(2, 6, shape.queues))
    return Jobs(queue, levels[queue, rng.integers(0, several[queue])])


def make_pilots(shape: Shape, count: int, seed: int = 3) -> list[Pilot]:
    """Return who asks in so many requests, the same ones in turn: large sites ask most, one in ten is private, one in twenty takes one job type only."""
    rng = random.Random(seed)
    names = _names(shape)
    few = min(count, POPULATION)
    places = rng.choices(names[0], [1 / (n + 3) for n in range(shape.sites)], k=few)
    # Most pilots have much time left.
    segments = [seconds for seconds, _ in shape.segments]
    lengths = rng.choices(segments, [n**2 for n in range(1, len(segments) + 1)], k=few)
    pilots = [_pilot(rng, site, length, *names[1:]) for site, length in zip(places, lengths, strict=True)]
    return [pilots[n % few] for n in range(count)]


def _pilot(
    rng: random.Random, site: str, cpu_time: int, tags: Sequence[str], platforms: Sequence[str]
) -> Pilot:
    owner, group = rng.choice(OWNERS) if rng.random() < 0.1 else ("", "")
    return Pilot(
        site=site,
        ce=f"ce{rng.randrange(20):02d}",
        platform=rng.choice(platforms),
        cpu_time=int(cpu_time * rng.choice((1, 1, 1.2))),
        tags=_some(rng, 0.35, tags, max(2, len(tags) // 10)),
        job_types=_some(rng, 0.05, JOB_TYPES, 1),
        owner=owner,
        group=group,
    )
