"""The draw of a queue against the law itself, by chi-square with fixed seeds.

The draws go to the queue alone, so that each case has tens of thousands; that whole picks follow is for
test_taskqueue_draw. The chances are the law's own integrals, and the weights the literal reference's.
"""

import random
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.unit.matching import reference
from tests.unit.matching.reference import goodness, homogeneity
from tests.unit.matching.strategies import asks, new_index, offers
from wms.matching.draw_law import Chance
from wms.matching.shares import GroupShare

SHARP = 1e-5
DRAWS = 20_000
LAWS = ("dirac", "proportional")


def chances(weights, law):
    """The chance of each to come first, by Gauss-Legendre in pieces over the time until the heaviest must have."""
    weights = np.array(weights, dtype=float)
    if law == "proportional":
        return weights / weights.sum()
    nodes, parts = np.polynomial.legendre.leggauss(64)
    end = 1 / weights.max()
    edges = np.minimum(np.concatenate([[0], np.geomspace(1e-4, 1, 40) * end]), end)
    found = np.zeros(len(weights))
    for low, high in pairwise(edges.tolist()):
        times = (low + high) / 2 + nodes * (high - low) / 2
        left = 1 - np.outer(times, weights)
        alive = np.exp(np.log(np.maximum(left, 1e-300)).sum(axis=1, keepdims=True))
        found += ((alive / left * weights) * parts[:, None]).sum(axis=0) * (high - low) / 2
    assert found.sum() == pytest.approx(1, abs=1e-6)
    return found


class Scene:
    """The same queues in an index and for the reference; each queue of a group of its own unless told otherwise."""

    def __init__(self, law, shares, **fields):
        self.law = law
        self.index = new_index(
            law=law, groups={f"g{n}": GroupShare(job_share=float(w)) for n, w in enumerate(shares)}
        )
        self.shares = {("v", f"g{n}"): reference.Share(float(w)) for n, w in enumerate(shares)}
        self.queues = {}
        for n in range(len(shares)):
            self.add(n, owner_group=f"g{n}", **{name: value(n) for name, value in fields.items()})

    def add(self, tq, priority=1, **wanted):
        self.queues[tq] = reference.Queue(asks(**wanted), {10 * tq: priority, 10 * tq + 1: priority})
        self.index.add_queue(tq, asks(**wanted))
        self.index.add(tq, priority, self.queues[tq].jobs)

    def empty(self, *tqs):
        for tq in tqs:
            self.index.discard(*self.queues[tq].jobs)
            self.queues[tq].jobs.clear()

    def drawn(self, resource, draws=DRAWS, seed=41):
        chance = Chance(np.random.default_rng(seed))
        found: Counter[int] = Counter()
        for _ in range(draws):
            view = self.index._fitting.view(resource)
            fit = self.index._closed.left_open(view.fit, resource.site, resource.grid_ce)
            slot = self.index._draw_slot(view, fit, resource.cpu_time, chance)
            found[self.index._queues[slot].tq_id] += 1
        return found

    def agrees(self, resource, *, closed=(), draws=DRAWS):
        fitting = [
            tq
            for tq, queue in self.queues.items()
            if queue.jobs and reference.fits(queue.requirements, resource) and tq not in closed
        ]
        heavy = reference.weights(self.queues, self.shares, fitting)
        found = self.drawn(resource, draws)
        assert set(found) <= set(fitting)
        expected = chances([heavy[tq] for tq in fitting], self.law)
        return goodness([found[tq] for tq in fitting], expected.tolist()) > SHARP


@pytest.mark.parametrize("law", LAWS)
def test_many_alike(law):
    assert Scene(law, [100] * 150).agrees(offers())


@pytest.mark.parametrize("law", LAWS)
def test_skewed_weights(law):
    assert Scene(law, np.random.default_rng(1).lognormal(3, 1.5, 150)).agrees(offers())


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "shares", [[4.0**-n * 1000 for n in range(9)], [5000.0] + [20.0] * 120], ids=["geometric", "one"]
)
def test_a_few_heavy_weights_among_light_ones(law, shares):
    assert Scene(law, shares).agrees(offers())


@pytest.mark.parametrize("law", LAWS)
def test_a_resource_that_fits_few_of_many(law):
    scene = Scene(
        law, np.random.default_rng(2).lognormal(3, 1, 200), tags=lambda n: ("x",) if n % 20 == 0 else ("y",)
    )
    assert scene.agrees(offers(tags=("x",)))


@pytest.mark.parametrize("law", LAWS)
def test_queues_that_emptied_and_closed_ones_are_as_if_they_were_not_there(law):
    scene = Scene(law, [*np.random.default_rng(3).lognormal(3, 1, 100), 1e-3], owner=lambda n: f"o{n % 5}")
    scene.drawn(offers(site="A"), 10)
    scene.empty(*range(0, 100, 7))
    scene.index._weighing.dirty.clear()  # as it is while no group has changed by enough
    scene.index.close("A", [("owner", "o3")])
    assert scene.agrees(offers(site="A"), closed=[n for n in range(101) if n % 5 == 3])
    assert scene.agrees(offers(site="B"))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "per_class", [3, pytest.param(40, marks=[pytest.mark.slow, pytest.mark.timeout(900)])]
)
def test_classes_seen_in_part(law, per_class):
    """Classes whose queues name different sites: at any one each class weighs what it does as a whole."""
    scene = Scene(law, [])
    for kind in range(12):
        for n in range(per_class):
            sites = (f"S{n % 4}", "B") if n % 3 else (f"S{n % 4}",)
            tq = 100 * kind + n
            banned = (f"Z{n}",)  # so that no two are one queue
            scene.add(
                tq, owner_group=f"h{kind % 5}", job_types=(f"t{kind}",), sites=sites, banned_sites=banned
            )
    for site in ("S0", "S1", "B"):
        assert scene.agrees(offers(site=site), draws=DRAWS // 5)


@pytest.mark.parametrize("law", LAWS)
def test_a_class_of_many_queues_of_which_a_third_is_seen(law):
    """Also once some have emptied, so small a part of their group that it is not weighed anew, but a large one of what is seen."""
    scene = Scene(law, [])
    for n in range(150):
        seen = n % 3 == 0
        scene.add(n, 0.01 if seen else 9, sites=("S", "T") if seen else ("T",), banned_sites=(f"Z{n}",))
    assert scene.agrees(offers(site="S"))
    scene.empty(*range(0, 150, 6))
    assert not scene.index._weighing.dirty
    assert scene.agrees(offers(site="S"))
    assert scene.agrees(offers(site="T"))


@pytest.mark.parametrize("law", LAWS)
def test_a_queue_that_emptied_and_gets_jobs_again_is_drawn_at_once(law):
    scene = Scene(law, [100] * 150)
    scene.drawn(offers(), 10)
    jobs = {tq: dict(scene.queues[tq].jobs) for tq in range(140)}
    scene.empty(*jobs)
    assert set(scene.drawn(offers(), 200)) <= set(range(140, 150))
    for tq in range(70):
        scene.queues[tq].jobs.update(jobs[tq])
        scene.index.add(tq, 1, jobs[tq])
    assert scene.agrees(offers())


@pytest.mark.parametrize("law", LAWS)
def test_a_random_number_of_nought_gives_no_queue_without_jobs(law):
    """Numbers of 0.0 make every key 0.0, that of a queue without jobs as well."""

    class Noughts:
        def random(self, count):
            return np.zeros(count)

        standard_exponential = random

    scene = Scene(law, [100] * 5)
    scene.empty(0, 1)
    noughts = Chance(Noughts())  # type: ignore[arg-type]
    view = scene.index._fitting.view(offers())
    assert scene.index._draw_slot(view, view.fit, 10**6, noughts) == 2
    scene.empty(2, 3, 4)
    assert scene.index._draw_slot(view, view.fit, 10**6, noughts) == -1


def test_parts_of_several_matchers_draw_as_one():
    """Two matchers, each with its own part first, take turns to the end: the order of the queues is that of the law."""
    rng, literal_rng = np.random.default_rng(51), random.Random(52)
    wanted = {1: asks(), 2: asks(owner="p"), 3: asks(owner_group="h")}
    sizes = {1: {1: 2, 5: 1}, 2: {3: 2}, 3: {1: 1}}
    jobs = {
        tq: {1000 * tq + 16 * n + 100 * p: p for p, many in of.items() for n in range(many)}
        for tq, of in sizes.items()
    }
    ours: Counter[Any] = Counter()
    literal: Counter[Any] = Counter()
    for _ in range(700):
        indexes = [new_index(), new_index()]
        for k, index in enumerate(indexes):
            for tq, asked in wanted.items():
                index.add_queue(tq, asked)
                for job, priority in jobs[tq].items():
                    index.add(tq, priority, [job])
            index.set_part(k, 2)
        order: list[Any] = []
        while len(indexes[0]):
            index, other = indexes[len(order) % 2], indexes[1 - len(order) % 2]
            [pick] = index.select(offers(), 1, rng)
            assert other.discard(pick.job_id) == 1
            order.append((pick.tq_id, pick.user_priority))
        ours[tuple(order)] += 1
        queues = {tq: reference.Queue(wanted[tq], dict(jobs[tq])) for tq in wanted}
        order = []
        while heavy := reference.candidates(queues, offers(), {}):
            job, tq, priority = reference.draw(queues, heavy, literal_rng)
            del queues[tq].jobs[job]
            order.append((tq, priority))
        literal[tuple(order)] += 1
    keys = sorted(set(ours) | set(literal))
    assert homogeneity([ours[key] for key in keys], [literal[key] for key in keys]) > SHARP
