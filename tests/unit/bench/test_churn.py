"""A table that keeps growing with the jobs that are over is found; one that settles late, or in a step, is not."""

import contextlib

import asyncpg
import pytest

from bench.churn import PASSING, Sizes, check_growth, churned
from bench.store import store
from bench.validity import InvalidError

MIB = 2**20


def sizes_of(table_mib: list[float]) -> list[Sizes]:
    """Return the sizes of rounds in which the leases hold so much, and the others nothing."""
    empty = {"table_bytes": 0, "index_bytes": 0}
    return [
        {**dict.fromkeys(PASSING, empty), "lease": {"table_bytes": int(mib * MIB), "index_bytes": 0}}
        for mib in table_mib
    ]


@pytest.mark.parametrize(
    "table_mib",
    [
        pytest.param([5, 9, 13, 18, 22, 22, 22, 22, 22, 22], id="settled"),
        pytest.param([5, 9, 13, 18, 18, 18, 18, 26, 26, 26], id="one late vacuum"),
        pytest.param([0.1 * n for n in range(30)], id="small"),
    ],
)
def test_what_settles_is_no_leak(table_mib):
    check_growth(sizes_of(table_mib))


def test_what_grows_with_the_jobs_is_a_leak():
    with pytest.raises(InvalidError, match=r"table lease keeps growing: 10,485,760 bytes .*, 20,971,520"):
        check_growth(sizes_of([2 * n for n in range(1, 11)]))


NONE = contextlib.nullcontext()
FOUND = pytest.raises(InvalidError, match="keeps growing")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("autovacuum", "beside", "outcome"),
    [
        pytest.param("on", "select", NONE, id="no leak"),
        pytest.param("off", "select", FOUND, id="no vacuum"),
        pytest.param(
            "on", "begin isolation level repeatable read; select 1 from job", FOUND, id="an old snapshot"
        ),
    ],
)
async def test_a_leak_in_postgres_is_found(autovacuum, beside, outcome):
    # Some seconds are then as good as a minute.
    settings = {"autovacuum_naptime": "1s", "autovacuum": autovacuum}
    async with store(settings=settings) as at:
        other = await asyncpg.connect(at.url)
        try:
            await other.execute(beside)
            with outcome:
                await churned(at, 40_000, 0, waiting=1_000, in_round=2_000)
        finally:
            await other.close()
