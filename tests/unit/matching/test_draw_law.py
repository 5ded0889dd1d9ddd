"""The draw against closed-form numbers and against the literal reference, by chi-square tests with fixed seeds."""

import random
from collections import Counter
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.unit.matching import reference
from tests.unit.matching.reference import first_of, goodness, homogeneity
from tests.unit.matching.strategies import asks, new_index, offers
from wms.matching.draw_law import smallest
from wms.matching.shares import GroupShare

SHARP = 1e-4
KNOWN = {(2, 1): (0.75, 0.25), (10, 1): (0.95, 0.05), (3, 2, 1): (0.5741, 0.2963, 0.1296)}


def drawn(index, resource, draws, *, seed, of):
    """Count draws with the job put back each time."""
    rng = np.random.default_rng(seed)
    counts: Counter[Any] = Counter()
    for _ in range(draws):
        picks = index.select(resource, 1, rng)
        counts[of(picks[0])] += 1
        index.restore(picks)
    return counts


def queue_of(pick):
    return pick.tq_id


@pytest.mark.parametrize("weights", KNOWN)
def test_queues_by_share(weights):
    index = new_index(groups={f"g{n}": GroupShare(job_share=100 * w) for n, w in enumerate(weights)})
    for n in range(len(weights)):
        index.add_queue(n, asks(owner_group=f"g{n}"))
        index.add(n, 1, range(100 * n, 100 * n + 20))
    counts = drawn(index, offers(), 12_000, seed=11, of=queue_of)
    assert first_of(weights) == pytest.approx(KNOWN[weights], abs=5e-5)
    assert goodness([counts[n] for n in range(len(weights))], first_of(weights)) > SHARP


@pytest.mark.parametrize("weights", KNOWN)
def test_queues_by_mean_priority_in_exact_proportion(weights):
    index = new_index(law="proportional")
    for n, weight in enumerate(weights):
        index.add_queue(n, asks(sites=("A",), tags=(str(n),)))
        if weight < 10:
            index.add(n, weight, range(100 * n, 100 * n + 20))
        else:  # a priority of 10 is no weight of 10
            index.add(n, 9.9999, range(100 * n, 100 * n + 20))
    counts = drawn(index, offers(tags=("0", "1", "2")), 12_000, seed=12, of=queue_of)
    chances = [weight / sum(weights) for weight in weights]
    assert goodness([counts[n] for n in range(len(weights))], chances) > SHARP


@pytest.mark.parametrize("law", ["dirac", "proportional"])
def test_levels_by_priority_over_jobs(law):
    """Levels of 3, 5 and 4 jobs: exact numbers from all twelve keys."""
    jobs = {1: 3, 2: 5, 7: 4}
    index = new_index(law=law)
    index.add_queue(0, asks())
    for priority, number in jobs.items():
        index.add(0, priority, range(100 * priority, 100 * priority + number))
    counts = drawn(index, offers(), 8_000, seed=13, of=lambda pick: pick.user_priority)
    each = [priority for priority, number in jobs.items() for _ in range(number)]
    chance = first_of(each) if law == "dirac" else [p / sum(each) for p in each]
    by_level = [sum(c for c, p in zip(chance, each, strict=True) if p == level) for level in jobs]
    assert goodness([counts[level] for level in jobs], by_level) > SHARP


@pytest.mark.parametrize("count", [1, 3, 1_000_000])
@pytest.mark.parametrize("law", ["dirac", "proportional"])
def test_smallest_of_many_has_the_right_distribution(law, count):
    """Its distribution function at its own quantiles is uniform, whatever the number."""
    rng = np.random.default_rng(14)
    keys = np.array([smallest(law, rng.random(), count, 2.5) for _ in range(8_000)])
    alone = keys * 2.5 if law == "dirac" else -np.expm1(-keys * 2.5)
    uniform = -np.expm1(count * np.log1p(-alone))
    cells = np.histogram(uniform, bins=20, range=(0, 1))[0]
    assert goodness(cells.tolist(), [0.05] * 20) > SHARP


def test_one_of_the_ten_oldest_evenly():
    index = new_index()
    index.add_queue(0, asks())
    index.add(0, 1, [*range(500, 600), *range(3, 33, 3)])
    counts = drawn(index, offers(), 10_000, seed=15, of=lambda pick: pick.job_id)
    assert set(counts) == set(range(3, 33, 3))
    assert goodness([counts[job] for job in range(3, 33, 3)], [0.1] * 10) > SHARP


# --- against the reference ------------------------------------------------------------------------

SHARES = {"g": (1000.0, False), "h": (500.0, True), "b": (1000.0, False)}
ASKED = {
    1: asks(),
    2: asks(owner="p", sites=("A", "B")),
    3: asks(owner_group="h", tags=("gpu",)),
    4: asks(owner_group="h", owner="p", sites=("A",)),
    5: asks(owner_group="h", owner="p", sites=("B",)),
    6: asks(owner_group="h", owner="p", sites=("A", "C")),
    7: asks(cpu_segment=5_000, owner="q"),
    8: asks(cpu_segment=5_000, vo="w"),
}
JOBS = {
    1: {1: 3, 2: 2},
    2: {0: 1, 5: 12},
    3: {1: 14, 9: 1},
    4: {3: 2},
    5: {3: 30},
    6: {2: 1, 3: 1},
    7: {1: 3, 10: 1, 4: 12},
    8: {1: 5},
}


def both(asked=ASKED, waiting=JOBS, law="dirac"):
    """The same queues in the index and in the reference."""
    index = new_index(
        law=law, groups={g: GroupShare(job_share=s, job_sharing=shared) for g, (s, shared) in SHARES.items()}
    )
    queues = {}
    for tq, wanted in asked.items():
        index.add_queue(tq, wanted)
        queues[tq] = reference.Queue(wanted)
        job = 1_000 * tq
        for priority, number in waiting[tq].items():
            ids = list(range(job, job + 2 * number, 2))
            index.add(tq, priority, ids)
            queues[tq].jobs.update(dict.fromkeys(ids, priority))
            job += 501
    return index, queues


REFERENCE_SHARES = {("v", g): reference.Share(s, shared) for g, (s, shared) in SHARES.items()}


@pytest.mark.parametrize("law", ["dirac", "proportional"])
@pytest.mark.parametrize(
    "resource",
    [
        offers(site="A"),
        offers(site="A", tags=("gpu",)),
        offers(site="C", tags=("gpu",)),
        offers(site="A", cpu_time=10**6),
        offers(vo="w", cpu_time=10**6),
        offers(generic=False, owner="p", owner_group="h", job_sharing=True),
    ],
)
def test_index_draws_as_the_reference(resource, law):
    index, queues = both(law=law)
    ours = drawn(index, resource, 6_000, seed=16, of=msgspec.structs.astuple)
    rng = random.Random(17)
    heavy = reference.candidates(queues, resource, REFERENCE_SHARES)
    literal = Counter(reference.draw(queues, heavy, rng, law) for _ in range(6_000))
    assert all(reference.fits(ASKED[tq], resource) for _, tq, _ in ours)
    keys = sorted(set(ours) | set(literal))
    assert homogeneity([ours[key] for key in keys], [literal[key] for key in keys]) > SHARP


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_emptying_queues_draws_as_the_reference_to_the_end():
    """The whole order in which a few queues are emptied, weights changing at every step."""
    asked = {1: asks(), 2: asks(owner="p"), 4: ASKED[4], 6: ASKED[6], 7: ASKED[7]}
    waiting = {1: {1: 1, 3: 1}, 2: {2: 1}, 4: {1: 1}, 6: {4: 1}, 7: {1: 1}}
    resource = offers(site="A", cpu_time=5_000)
    rng, literal_rng = np.random.default_rng(18), random.Random(19)
    ours: Counter[tuple[int, ...]] = Counter()
    literal: Counter[tuple[int, ...]] = Counter()
    for _ in range(1_500):
        index, queues = both(asked, waiting)
        ours[tuple(pick.tq_id for pick in index.select(resource, 99, rng))] += 1
        assert len(index) == 0
        order = []
        while heavy := reference.candidates(queues, resource, REFERENCE_SHARES):
            job, tq, _ = reference.draw(queues, heavy, literal_rng)
            del queues[tq].jobs[job]
            order.append(tq)
        literal[tuple(order)] += 1
    assert all(order[0] == 7 and len(order) == 6 for order in ours)
    keys = sorted(set(ours) | set(literal))
    assert homogeneity([ours[key] for key in keys], [literal[key] for key in keys]) > SHARP


def test_a_queue_emptied_behind_a_table_does_not_bend_the_draw():
    """Many tiny queues of one group, so that emptying one calls for no weighing, and three heavy ones to compare."""
    groups = {f"g{n}": GroupShare(job_share=share) for n, share in enumerate((3.0, 2.0, 1.0))}
    groups["many"] = GroupShare(job_share=1.0, job_sharing=True)
    index = new_index(groups=groups)
    for n in range(3):
        index.add_queue(n, asks(owner_group=f"g{n}"))
        index.add(n, 1, range(100 * n, 100 * n + 20))
    for n in range(400):
        index.add_queue(1_000 + n, asks(owner_group="many", tags=(str(n),)))
        index.add(1_000 + n, 1, [10_000 + n])
    resource = offers(tags=tuple(str(n) for n in range(400)))
    drawn(index, resource, 10, seed=20, of=queue_of)
    index._weighing.refresh()
    index.discard(10_001, 10_002)
    assert not index._weighing.dirty, "two of 400 call for no weighing"
    index.discard(*range(10_000, 10_400))
    counts = drawn(index, resource, 6_000, seed=21, of=queue_of)
    assert goodness([counts[n] for n in range(3)], first_of((3, 2, 1))) > SHARP
