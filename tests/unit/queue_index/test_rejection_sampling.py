"""Every way a queue is drawn - proposals, heavy classes, one by one - against the law itself, by chi-square with fixed seeds.

The draws go to the queue alone, so that each case has tens of thousands; that whole picks follow is for
test_draw_law. The chances are the law's own integrals, and the weights the literal reference's.
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

    def pool(self, resource):
        return self.index._fitting.view(resource).sights()[0].pool


@pytest.mark.parametrize("law", LAWS)
def test_many_alike_are_drawn_by_proposals_alone(law):
    scene = Scene(law, [100] * 150)
    assert scene.agrees(offers())
    assert scene.pool(offers())._heavy == []


@pytest.mark.parametrize("law", LAWS)
def test_skewed_weights(law):
    scene = Scene(law, np.random.default_rng(1).lognormal(3, 1.5, 150))
    assert scene.agrees(offers())
    if law == "dirac":
        assert 0 < len(scene.pool(offers())._heavy) < 13


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "shares", [[4.0**-n * 1000 for n in range(9)], [5000.0] + [20.0] * 120], ids=["geometric", "one"]
)
def test_weights_so_heavy_that_they_are_drawn_one_by_one(law, shares):
    scene = Scene(law, shares)
    assert scene.agrees(offers())
    if law == "dirac":
        assert scene.pool(offers())._heavy


@pytest.mark.parametrize("law", LAWS)
def test_a_resource_that_fits_few_of_many(law):
    scene = Scene(
        law, np.random.default_rng(2).lognormal(3, 1, 200), tags=lambda n: ("x",) if n % 20 == 0 else ("y",)
    )
    assert scene.agrees(offers(tags=("x",)))
    assert scene.index._fitting.view(offers(tags=("x",))).sights()[0]._slots.size == 10


@pytest.mark.parametrize("law", LAWS)
def test_queues_emptied_behind_the_table_and_closed_ones_are_rejected_proposals(law):
    scene = Scene(law, [*np.random.default_rng(3).lognormal(3, 1, 100), 1e-3], owner=lambda n: f"o{n % 5}")
    scene.drawn(offers(site="A"), 10)
    scene.empty(*range(0, 100, 7))
    scene.index._weighing.dirty.clear()  # as it is while no group has changed by enough
    scene.index.close("A", [("owner", "o3")])
    assert scene.agrees(offers(site="A"), closed=[n for n in range(101) if n % 5 == 3])
    assert scene.agrees(offers(site="B"))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("per_class", [3, pytest.param(40, marks=pytest.mark.slow)])
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
def test_a_resource_draws_for_itself_from_a_class_of_many_queues(law):
    """Also once some have emptied, so small a part of their group that it is not weighed anew, but a large one of what is seen."""
    scene = Scene(law, [])
    for n in range(150):
        seen = n % 3 == 0
        scene.add(n, 0.01 if seen else 9, sites=("S", "T") if seen else ("T",), banned_sites=(f"Z{n}",))
    assert scene.agrees(offers(site="S"))
    [sight] = scene.index._fitting.view(offers(site="S")).sights()
    assert (sight._thinning is not None) is (law == "dirac")
    scene.empty(*range(0, 150, 6))
    assert not scene.index._weighing.dirty
    assert scene.agrees(offers(site="S"))
    assert scene.agrees(offers(site="T"))


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
