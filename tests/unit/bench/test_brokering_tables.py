"""The tables of the broker's benchmark: shares of five classes, and jobs that are told of once they are at their elements."""

import asyncio
import contextlib

import pytest

from bench.brokering_grid import ARC, CLUSTERS, PLACES, speed
from bench.brokering_tables import CLASSES, Arrivals, classes
from bench.validity import InvalidError


class Answers:
    """Rows that a database answers with, one answer after the other."""

    def __init__(self, *rows: list[dict[str, object]]) -> None:
        self.rows = list(rows)
        self.asked: list[list[int]] = []

    async def fetch(self, _: str, ids: list[int]) -> list[dict[str, object]]:
        self.asked.append(ids)
        return self.rows.pop(0) if self.rows else []


def row(job_id: int, placed: str, attempt: int = 1) -> dict[str, object]:
    return {"job_id": job_id, "placed": placed, "attempt": attempt}


@contextlib.asynccontextmanager
async def watched(*rows: list[dict[str, object]]):
    arrivals = Arrivals(Answers(*rows))
    watch = asyncio.create_task(arrivals.watch())
    yield arrivals
    watch.cancel()


def test_each_class_has_the_shares_of_the_sets() -> None:
    found = [[0.5, 1.9, 2.0, 6.0], [0.1, 0.2, 0.3, 11.0]]
    assert classes(found, CLASSES["without"]) == {
        "0-2 s": [62.5, 50.0, 75.0],
        "2-5 s": [12.5, 0.0, 25.0],
        "5-8 s": [12.5, 0.0, 25.0],
        "8-11 s": [0.0, 0.0, 0.0],
        "11-inf s": [12.5, 0.0, 25.0],
    }


async def test_a_job_is_told_of_once_it_is_at_its_element() -> None:
    async with watched([row(2, "Sent")], [row(1, "Started")]) as arrivals:
        found = await asyncio.gather(arrivals.of(1), arrivals.of(2))
    assert [each["placed"] for each in found] == ["Started", "Sent"]


@pytest.mark.parametrize("told", [row(1, "Failed"), row(1, "Sent", attempt=2)])
async def test_a_job_whose_first_placement_fails_makes_the_figures_invalid(told: dict[str, object]) -> None:
    async with watched([told]) as arrivals:
        with pytest.raises(InvalidError, match="did not come"):
            await arrivals.of(1)


def test_the_grid_is_that_of_the_reference() -> None:
    sizes = [slots for clusters in CLUSTERS.values() for slots in clusters.values()]
    assert len(set(PLACES)) == 12
    assert (min(sizes), max(sizes), sizes.count(100)) == (4, 388, 6)
    assert sum(each.site == ARC for each in PLACES) == 2
    assert len({speed(ce) for clusters in CLUSTERS.values() for ce in clusters}) == 10
