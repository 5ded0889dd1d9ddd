"""Pools of queues: which of them a resource draws from, and that a draw gives a queue that fits and has jobs."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.unit.matching.reference import first_of, goodness
from tests.unit.matching.strategies import asks, of_v, offers
from wms.matching.draw_law import Chance, Law
from wms.matching.grouping import Requirements
from wms.matching.shares import GroupShare
from wms.queue_index.queue_draw import QueueDraw
from wms.queue_index.queue_pools import Pools, ResourcePools
from wms.queue_index.weights import Weights

SHARP = 1e-4


class Scene:
    """Queues with a job each, by slot."""

    def __init__(
        self, *wanted: Requirements, law: Law = "dirac", shares: dict[str, float] | None = None
    ) -> None:
        groups = {name: GroupShare(job_share=share) for name, share in (shares or {}).items()}
        self.weights = Weights(of_v(groups))
        self.pools = Pools(self.weights, law)
        self.count = 0
        for each in wanted:
            self.append(each)

    def append(self, wanted: Requirements) -> None:
        self.weights.append(wanted)
        self.pools.append(wanted)
        self.weights.note(self.count, 1, 1.0)
        self.count += 1

    def drawn(self, draws: int, *fitting: int, seed: int = 1) -> Counter[int]:
        """Draw from the only pool with the jobs put back."""
        self.weights.refresh()
        (pool,) = self.pools.resource_pools(offers()).pools
        view, chance = QueueDraw(pool), Chance(np.random.default_rng(seed))
        mask = np.zeros(self.count, dtype=bool)
        mask[list(fitting)] = True
        fit = np.packbits(mask, bitorder="little").tobytes()
        return Counter(view.next(fit, chance) for _ in range(draws))


def segments(resource_pools: ResourcePools) -> dict[int, list[int]]:
    return {pool.segment: pool.slots.values.tolist() for pool in resource_pools.pools}


def test_a_resource_draws_from_its_setup_and_vo_the_highest_segment_first() -> None:
    scene = Scene(
        asks(), asks(cpu_segment=9_000), asks(vo="w"), asks(setup="t"), asks(owner="p", owner_group="h")
    )
    assert list(segments(scene.pools.resource_pools(offers())).items()) == [(9_000, [1]), (500, [0, 4])]
    assert segments(scene.pools.resource_pools(offers(vo="w"))) == {500: [2]}
    assert segments(scene.pools.resource_pools(offers(setup="nowhere"))) == {}


@pytest.mark.parametrize(
    ("private", "expected"),
    [
        ({"owner": "a"}, [0, 3]),
        ({"owner": "b"}, [1, 4]),
        ({"owner": "a", "job_sharing": True}, [0, 1, 3, 4]),
        ({"owner": "nobody"}, []),
    ],
)
def test_a_private_pilot_draws_from_its_owners_queues_or_its_groups(
    private: dict[str, Any], expected: list[int]
) -> None:
    scene = Scene(asks(owner="a"), asks(owner="b"), asks(owner="a", owner_group="h"))
    resource = offers(generic=False, owner_group="g", **private)
    scene.pools.resource_pools(resource)
    for owner in "ab":
        scene.append(asks(owner=owner, tags=("later",)))
    assert segments(scene.pools.resource_pools(resource)).get(500, []) == expected


@pytest.mark.parametrize("law", ["dirac", "proportional"])
def test_only_queues_that_fit_and_have_jobs_are_drawn(law: Law) -> None:
    scene = Scene(*(asks(owner_group=f"g{n}") for n in range(30)), law=law)
    scene.weights.note(4, 0, 0.0)
    assert set(scene.drawn(500, 3, 4, 5)) == {3, 5}
    scene.weights.note(3, 0, 0.0)
    assert set(scene.drawn(50, 3, 4, 5)) == {5}
    scene.weights.note(5, 0, 0.0)
    assert set(scene.drawn(5, 3, 4, 5)) == {-1}
    scene.weights.note(4, 1, 1.0)
    assert set(scene.drawn(5, 3, 4, 5)) == {4}


def test_a_queue_that_comes_later_is_drawn_as_the_others() -> None:
    scene = Scene(asks(owner_group="g0"))
    assert set(scene.drawn(5, 0)) == {0}
    scene.append(asks(owner_group="g1"))
    assert goodness([scene.drawn(4_000, 0, 1)[slot] for slot in (0, 1)], [0.5, 0.5]) > SHARP


@pytest.mark.parametrize("fitting", [(0, 1, 2), tuple(range(100))], ids=["few of many", "all"])
def test_heavy_groups_come_first_as_often_as_the_law_says(fitting: tuple[int, ...]) -> None:
    shares = {f"g{n}": share for n, share in enumerate([3000.0, 2000.0, 1000.0])}
    light = [asks(owner_group="light", tags=(f"t{n}",)) for n in range(97)]
    scene = Scene(*(asks(owner_group=f"g{n}") for n in range(3)), *light, shares={**shares, "light": 1e-6})
    counts = scene.drawn(6_000, *fitting)
    heavy = [counts[n] for n in range(3)]
    expected = [float(chance) for chance in first_of((3, 2, 1))]
    assert goodness(heavy, expected) > SHARP
