"""What a pick costs in the index alone, as its queues drain, beside the plainest draw: one key for each queue that fits.

python -m bench.draw [--queues N] [--waiting N] [--picks N] [--json]

Two populations. `distinct`: nearly every queue is a share class of its own, and thousands of kinds of resource ask. `few`: the
work of four owners is spread over the sites, so that all queues are of four share classes, and 60 kinds of resource ask.
"""

import random
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bench.matcher import batches
from bench.measuring import Figures, machine, run
from bench.store import required
from bench.validity import mismatch
from bench.workload import (
    OWNERS,
    PLATFORMS,
    SHARING,
    VO,
    Pilot,
    Queue,
    Shape,
    make_jobs,
    make_pilots,
    make_queues,
)
from services.matcher.verified_request import bind
from wms.ids import TaskQueueId
from wms.matching.shares import GroupShare
from wms.queue_index.index import QueueIndex
from wms.runtime.process import collect_young_alone
from wms.site import Resource

FEW_OWNERS, FEW_KINDS = 4, 60
ROWS = 10
WARM_UP = 10_000
PLAIN_DRAWS = 20_000
"""Draws by which the plain one is timed; it costs the same for as long as no queue is empty."""


async def measure(queues: int, waiting: int, picks: int) -> Figures:
    shape = Shape(queues=queues, waiting=waiting)
    return {
        "machine": machine("none"),
        "distinct": population(shape, make_queues(shape), make_pilots(shape, WARM_UP), picks),
        "few": population(shape, few_classes(shape), few_kinds(shape), picks),
    }


def few_classes(shape: Shape, seed: int = 5) -> list[Queue]:
    """Return queues of four owners that differ in nothing but their sites, one to four of them."""
    rng = random.Random(seed)
    sites = [shape.site(n) for n in range(shape.sites)]
    found: dict[tuple[str, ...], Queue] = {}
    while len(found) < shape.queues:
        owner, group = rng.choice(OWNERS[:FEW_OWNERS])
        wanted = tuple(sorted(rng.sample(sites, rng.randint(1, 4))))
        queue = Queue(
            owner=owner, group=group, cpu_time=50_000, priority=1.0, sites=wanted, platforms=PLATFORMS[:1], job_types=("user",)
        )  # fmt: skip
        found.setdefault((owner, *wanted), queue)
    return list(found.values())


def few_kinds(shape: Shape) -> list[Pilot]:
    """Return one pilot of each kind of resource."""
    return [
        Pilot(site=shape.site(n), ce="ce00", platform=PLATFORMS[0], cpu_time=300_000)
        for n in range(min(FEW_KINDS, shape.sites))
    ]


def population(shape: Shape, kinds: Sequence[Queue], pilots: Sequence[Pilot], picks: int) -> Figures:
    """Return us of processor time a pick in each tenth of the picks, and of a plain draw at their begin."""
    index = _loaded(shape, kinds)
    resources = [_resource(pilot) for pilot in pilots]
    rng = np.random.default_rng(4)
    asking = rng.integers(0, len(resources), (ROWS, picks // ROWS)).tolist()
    plain = _plain(index, kinds, pilots)
    for number in range(WARM_UP):
        index.select(resources[number % len(resources)], 1, rng)
    rows = [_timed(index, [resources[n] for n in row], rng) for row in asking]
    return {
        "us_a_pick": rows,
        "end_to_start": round(rows[-1] / rows[0], 2),
        "plain_us_a_draw": plain,
        "to_plain": round(rows[0] / plain, 2),
    }


def _loaded(shape: Shape, kinds: Sequence[Queue]) -> QueueIndex:
    index = QueueIndex(groups={(VO, group): GroupShare(job_sharing=True) for group in SHARING})
    for number, requirements in enumerate(required(kinds)):
        index.add_queue(TaskQueueId(number), requirements)
    jobs = make_jobs(shape)
    index.load(jobs.queue, jobs.priority, np.arange(1, len(jobs) + 1))
    collect_young_alone()
    return index


def _resource(pilot: Pilot) -> Resource:
    (delivery,), *_ = batches([pilot], range(1), 1)
    assert delivery.principal is not None
    principal = delivery.principal
    return bind(principal, delivery.message.resource, job_sharing=principal.group in SHARING)


def _timed(index: QueueIndex, resources: Sequence[Resource], rng: np.random.Generator) -> float:
    before = time.process_time()
    for resource in resources:
        index.select(resource, 1, rng)
    return round(1e6 * (time.process_time() - before) / len(resources), 1)


def _plain(index: QueueIndex, kinds: Sequence[Queue], pilots: Sequence[Pilot]) -> float:
    """Time one key, RAND()/weight, for each queue of the highest segment that fits."""
    weights = np.array([index.weight(TaskQueueId(n)) for n in range(len(kinds))])
    fitting = [_highest(pilot, kinds) for pilot in pilots[:FEW_KINDS]]
    fitting = [slots for slots in fitting if len(slots)]
    rng = np.random.default_rng(4)
    before = time.process_time()
    for number in range(PLAIN_DRAWS):
        slots = fitting[number % len(fitting)]
        int(slots[(rng.random(len(slots)) / weights[slots]).argmin()])
    return round(1e6 * (time.process_time() - before) / PLAIN_DRAWS, 1)


def _highest(pilot: Pilot, kinds: Sequence[Queue]) -> NDArray[np.intp]:
    fitting = [number for number, queue in enumerate(kinds) if not mismatch(queue, pilot)]
    highest = max((kinds[number].cpu_time for number in fitting), default=0)
    return np.array([number for number in fitting if kinds[number].cpu_time == highest], dtype=np.intp)


if __name__ == "__main__":
    run("draw", measure, queues=10_000, waiting=1_000_000, picks=600_000)
