"""A resource that sees few queues of a pool: which it finds, what they weigh for it, and that the law stays the same."""

from collections import Counter, defaultdict

import numpy as np
import pytest

from tests.unit.matching.reference import first_of, goodness
from tests.unit.matching.strategies import asks, of_v, offers
from wms.matching.draw_law import Chance
from wms.matching.shares import GroupShare
from wms.queue_index.arrivals import Race
from wms.queue_index.queue_draw import QueueDraw
from wms.queue_index.queue_pools import Pools, QueuePool
from wms.queue_index.seen_queues import SeenQueues
from wms.queue_index.weights import Weights

SHARP = 1e-4


class Scene:
    """Classes of so many queues, each of an owner of its own, and `light` queues that weigh next to nothing."""

    def __init__(self, *classes: int, light: int = 0) -> None:
        self.weights = Weights(of_v({"light": GroupShare(job_share=0.0)}))
        pools = Pools(self.weights, "dirac")
        self.of_class = [number for number, queues in enumerate(classes) for _ in range(queues)]
        for slot, number in enumerate(self.of_class):
            requirements = asks(owner=f"o{number}", sites=(f"S{slot}",))
            self.weights.append(requirements)
            pools.append(requirements)
            self.weights.note(slot, 1, 1.0 + slot % 3)
        for slot in range(len(self.of_class), len(self.of_class) + light):
            requirements = asks(owner_group="light", tags=(f"t{slot}",))
            self.weights.append(requirements)
            pools.append(requirements)
            self.weights.note(slot, 1, 1.0)
        self.weights.refresh()
        self.pool: QueuePool
        (self.pool,) = pools.resource_pools(offers()).pools
        self.chance = Chance(np.random.default_rng(5))
        self.seen = SeenQueues(self.pool)

    def bits(self, *slots: int) -> bytes:
        mask = np.zeros(self.pool.slots.length, dtype=bool)
        mask[list(slots)] = True
        return np.packbits(mask, bitorder="little").tobytes()

    def drawn(self, draws: int, fit: bytes) -> Counter[int]:
        self.weights.refresh()
        return Counter(self._one(fit) for _ in range(draws))

    def drawn_by(self, stream: str, fit: bytes) -> Counter[int]:
        if stream == "own":
            return self.drawn(20_000, fit)
        assert self.pool.is_shared
        self.weights.refresh()
        draw = QueueDraw(self.pool)
        return Counter(draw.next(fit, self.chance) for _ in range(20_000))

    def _one(self, fit: bytes) -> int:
        race = Race("dirac", self.chance)
        self.seen.finish(race, fit)
        return race.first

    def chances(self, *slots: int) -> list[float]:
        """Return how often each of these comes first where they are seen: a class has its whole weight."""
        weight = self.weights.weight
        whole, part = defaultdict[int, float](float), defaultdict[int, float](float)
        for slot, number in enumerate(self.of_class):
            whole[number] += weight(slot)
            part[number] += weight(slot) if slot in slots else 0.0
        numbers = [self.of_class[slot] for slot in slots]
        return first_of(
            [weight(slot) * whole[number] / part[number] for slot, number in zip(slots, numbers, strict=True)]
        )


@pytest.mark.parametrize("stream", ["own", "shared"])
@pytest.mark.parametrize("slots", [(0, 4, 5), (1, 2, 5, 6), (3, 4), tuple(range(7))])
def test_a_class_that_is_seen_in_part_has_its_whole_weight(slots: tuple[int, ...], stream: str) -> None:
    scene = Scene(4, 1, 2, light=200)
    counts = scene.drawn_by(stream, scene.bits(*slots))
    assert goodness([counts[slot] for slot in slots], scene.chances(*slots)) > SHARP


@pytest.mark.parametrize("stream", ["own", "shared"])
def test_a_class_keeps_its_weight_when_a_queue_of_it_empties(stream: str) -> None:
    scene = Scene(3, 2, light=200)
    scene.weights.note(1, 0, 0.0)
    slots = (0, 2, 4)
    counts = scene.drawn_by(stream, scene.bits(1, *slots))
    assert goodness([counts[slot] for slot in slots], scene.chances(*slots)) > SHARP


def test_classes_of_many_queues_are_drawn_by_the_same_law() -> None:
    scene = Scene(40, 1, light=200)
    assert not scene.pool.is_shared
    fit, draw = scene.bits(7, 40), QueueDraw(scene.pool)
    counts = Counter(draw.next(fit, scene.chance) for _ in range(10_000))
    assert goodness([counts[slot] for slot in (7, 40)], scene.chances(7, 40)) > SHARP


def test_queues_that_emptied_are_passed_over_and_none_is_left_in_the_end() -> None:
    scene = Scene(*[1] * 100)
    fit = scene.bits(*range(100))
    assert len(scene.drawn(2_000, fit)) == 100
    for slot in range(1, 100):
        scene.weights.note(slot, 0, 0.0)
    assert scene.drawn(20, fit) == {0: 20}
    scene.weights.note(0, 0, 0.0)
    assert scene.drawn(2, fit) == {-1: 2}
    scene.weights.note(9, 1, 1.0)
    assert scene.drawn(20, fit) == {9: 20}


def test_what_others_weigh_tells_how_little_it_sees() -> None:
    scene = Scene(1, 1, 1, 1)
    scene.drawn(1, scene.bits(0))
    seen = scene.seen.total
    assert seen == pytest.approx(scene.pool.arrivals().total / 4)


def test_a_level_bounds_what_is_seen() -> None:
    scene = Scene(*[1] * 10)
    scene.seen = SeenQueues(scene.pool, scene.bits(2, 3))
    assert set(scene.drawn(40, scene.bits(3, 4))) == {3}
