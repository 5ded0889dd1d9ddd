"""What one kind of resource sees of a pool: few queues or many, as they are now, and drawn by the law."""

from collections import Counter

import numpy as np
import pytest

from tests.unit.matching.reference import goodness
from tests.unit.matching.strategies import asks, of_v, offers
from wms.matching.draw_law import Chance, Law
from wms.matching.shares import GroupShare
from wms.queue_index.queue_draw import QueueDraw
from wms.queue_index.queue_pools import Pools, QueuePool
from wms.queue_index.weights import Weights

SHARP = 1e-4


class Scene:
    """So many queues of groups of their own; the last share is three times the others'."""

    def __init__(self, queues: int, law: Law = "proportional") -> None:
        shares = {f"g{n}": GroupShare(job_share=3000.0 if n == queues - 1 else 1000.0) for n in range(queues)}
        self.weights = Weights(of_v(shares))
        self.pools = Pools(self.weights, law)
        self.queues = queues
        for slot in range(queues):
            self.weights.append(asks(owner_group=f"g{slot}"))
            self.pools.append(asks(owner_group=f"g{slot}"))
            self.weights.note(slot, 1, 1.0)
        self.chance = Chance(np.random.default_rng(1))
        self.view = QueueDraw(self.pool)

    @property
    def pool(self) -> QueuePool:
        (pool,) = self.pools.resource_pools(offers()).pools
        return pool

    def bits(self, *slots: int) -> bytes:
        mask = np.zeros(self.queues, dtype=bool)
        mask[list(slots)] = True
        return np.packbits(mask, bitorder="little").tobytes()

    def drawn(self, draws: int, fit: bytes) -> Counter[int]:
        self.weights.refresh()
        return Counter(self.view.next(fit, self.chance) for _ in range(draws))


@pytest.mark.parametrize("queues", [5, 60], ids=["few", "many"])
def test_queues_are_drawn_by_their_weights(queues: int) -> None:
    scene = Scene(queues)
    counts = scene.drawn(4_000, scene.bits(*range(queues)))
    chances = [1 / (queues + 2)] * (queues - 1) + [3 / (queues + 2)]
    assert goodness([counts[slot] for slot in range(queues)], chances) > SHARP


@pytest.mark.parametrize("law", ["dirac", "proportional"])
@pytest.mark.parametrize("queues", [5, 60], ids=["few", "many"])
def test_what_empties_or_gets_jobs_again_is_seen_at_the_next_draw(queues: int, law: Law) -> None:
    scene = Scene(queues, law)
    fit = scene.bits(*range(queues))
    assert len(scene.drawn(1_000, fit)) == queues
    for slot in range(2, queues):
        scene.weights.note(slot, 0, 0.0)
    assert set(scene.drawn(100, fit)) == {0, 1}
    scene.weights.note(7 % queues, 1, 1.0)
    assert set(scene.drawn(200, fit)) == {0, 1, 7 % queues}


def test_other_queues_that_fit_are_seen_at_once() -> None:
    scene = Scene(30)
    assert set(scene.drawn(50, scene.bits(1, 2))) == {1, 2}
    assert set(scene.drawn(50, scene.bits(2, 3))) == {2, 3}
    assert set(scene.drawn(2, scene.bits())) == {-1}


def test_a_view_of_one_level_draws_from_that_alone() -> None:
    scene = Scene(30)
    scene.view = QueueDraw(scene.pool, scene.bits(3, 4))
    assert set(scene.drawn(20, scene.bits(4, 5))) == {4}
    assert set(scene.drawn(20, scene.bits(3, 4, 5))) == {3, 4}


def test_a_resource_that_sees_little_of_a_pool_draws_by_the_same_law() -> None:
    scene = Scene(300)
    fit = scene.bits(5, 299)
    counts = scene.drawn(2_000, fit)
    assert goodness([counts[slot] for slot in (5, 299)], [1 / 4, 3 / 4]) > SHARP
    everything = scene.bits(*range(300))
    assert len(scene.drawn(4_000, everything)) > 250


def test_what_was_drawn_ahead_is_thrown_away_when_a_queue_gets_jobs() -> None:
    """Of arrivals ahead the first would be of queue 0 for long, had it stayed alone."""
    scene = Scene(2)
    scene.weights.note(1, 0, 0.0)
    assert set(scene.drawn(40, scene.bits(0, 1))) == {0}
    scene.weights.note(1, 1, 1.0)
    assert set(scene.drawn(16, scene.bits(0, 1))) == {0, 1}


def test_what_was_drawn_ahead_is_thrown_away_when_a_queue_empties() -> None:
    scene = Scene(3)
    assert set(scene.drawn(40, scene.bits(0, 1, 2))) == {0, 1, 2}
    scene.weights.note(2, 0, 0.0)
    assert set(scene.drawn(40, scene.bits(0, 1, 2))) == {0, 1}
