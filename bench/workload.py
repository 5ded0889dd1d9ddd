"""What waits and who asks, in the shape of production: task queues, jobs in them, pilots. The same seed, the same workload.

Plain values that the system and its peers are loaded from alike; nothing here knows either.
"""

import random
from collections.abc import Sequence
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

VO = "lhcb"
GROUPS = ("lhcb_mc", "lhcb_prod", "lhcb_user", "lhcb_data", "lhcb_admin")
SHARING = frozenset({"lhcb_mc", "lhcb_prod"})
"""Groups whose members share their jobs: a private pilot of one serves all of its owners."""
OWNERS = tuple((f"user{n:02d}", GROUPS[n % len(GROUPS)]) for n in range(20))
PLATFORMS = ("x86_64-slc6", "x86_64-el9", "aarch64-el9")
SEGMENTS = (500, 5_000, 50_000, 300_000)
JOB_TYPES = tuple(f"type{n:02d}" for n in range(24))
BURST = 20
"""Jobs of one queue that arrive together, so that their ids follow on."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """How large, and how varied."""

    queues: int = 10_000
    waiting: int = 1_000_000
    sites: int = 100
    tags: int = 3
    spread: float = 1.0
    """Of the sizes of queues: the sigma of their logarithms."""

    def site(self, n: int) -> str:
        return f"LCG.Site{n:04d}.org"

    def tag(self, n: int) -> str:
        return ("GPU", "MultiProcessor", "LargeMem")[n] if n < 3 else f"tag{n:03d}"


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
    sites = [shape.site(n) for n in range(shape.sites)]
    tags = [shape.tag(n) for n in range(shape.tags)]
    found: dict[bytes, Queue] = {}
    while len(found) < shape.queues:
        owner, group = rng.choice(OWNERS)
        wanted = _some(rng, 0.3, sites, 5)
        queue = Queue(
            owner=owner,
            group=group,
            cpu_time=rng.choices(SEGMENTS, (1, 2, 4, 3))[0],
            priority=round(max(0.001, rng.lognormvariate(0, 1) * 10), 4),
            sites=wanted,
            banned=() if wanted else _some(rng, 0.14, sites, 3),
            platforms=_some(rng, 0.5, PLATFORMS, 2),
            job_types=(rng.choice(JOB_TYPES),),
            tags=_some(rng, 0.15, tags, 2),
        )
        found.setdefault(msgspec.json.encode(msgspec.structs.replace(queue, priority=0.0)), queue)
    return list(found.values())


def _some(rng: random.Random, share: float, values: Sequence[T], most: int) -> tuple[T, ...]:
    """Return, for that share of the calls, one to `most` of the values; nothing for the others."""
    return tuple(rng.sample(values, rng.randint(1, most))) if rng.random() < share else ()


def make_jobs(shape: Shape, seed: int = 2) -> Jobs:
    """Return the waiting jobs: some queues large, most small, none empty; six in ten queues with one priority alone."""
    rng = np.random.default_rng(seed)
    sizes = rng.lognormal(0, shape.spread, shape.queues)
    counts = 1 + rng.multinomial(shape.waiting - shape.queues, sizes / sizes.sum())
    queue = np.repeat(np.arange(shape.queues, dtype=np.int32), counts)
    whole = len(queue) // BURST * BURST
    bursts = queue[:whole].reshape(-1, BURST)
    queue = np.concatenate([bursts[rng.permutation(len(bursts))].ravel(), queue[whole:]])
    levels = rng.integers(1, 10, (shape.queues, 5), dtype=np.int16)
    several = np.where(rng.random(shape.queues) < 0.6, 1, rng.integers(2, 6, shape.queues))
    return Jobs(queue, levels[queue, rng.integers(0, several[queue])])


def make_pilots(shape: Shape, count: int, seed: int = 3) -> list[Pilot]:
    """Return pilots: large sites ask most, one in ten is private, one in twenty takes one job type only."""
    rng = random.Random(seed)
    sites = [shape.site(n) for n in range(shape.sites)]
    tags = [shape.tag(n) for n in range(shape.tags)]
    places = rng.choices(sites, [1 / (n + 3) for n in range(shape.sites)], k=count)
    return [_pilot(rng, site, tags) for site in places]


def _pilot(rng: random.Random, site: str, tags: Sequence[str]) -> Pilot:
    owner, group = rng.choice(OWNERS) if rng.random() < 0.1 else ("", "")
    return Pilot(
        site=site,
        ce=f"ce{rng.randrange(20):02d}",
        platform=rng.choice(PLATFORMS),
        cpu_time=int(rng.choices(SEGMENTS, (5, 10, 25, 60))[0] * rng.choice((1, 1, 1.2))),
        tags=_some(rng, 0.35, tags, max(2, len(tags) // 10)),
        job_types=_some(rng, 0.05, JOB_TYPES, 1),
        owner=owner,
        group=group,
    )
