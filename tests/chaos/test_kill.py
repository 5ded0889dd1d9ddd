"""Two thousand jobs end as they should while thirty processes are killed under them."""

import os
from pathlib import Path

import pytest

from tests.chaos.run import Run
from tests.chaos.victims import VICTIMS

SEED = int(os.environ.get("WMS_CHAOS_SEED", "20_03"))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("link", [pytest.param("kafka", marks=pytest.mark.long), "gateway"])
async def test_every_kind_of_process_is_killed_in_turn_and_nothing_is_lost_or_run_twice(
    tmp_path: Path, link: str
) -> None:
    kills = 4 * len(VICTIMS)
    out = await Run(tmp_path, seed=SEED, jobs=2_000, kills=kills, link=link).run()
    print(out.text())
    assert out.ok, out.text()
    assert out.jobs >= 2_000
    assert len(out.kills) >= 30
    assert {each.victim for each in out.kills} == set(VICTIMS)


@pytest.mark.chaos
@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", range(5))
async def test_the_same_for_longer_and_by_other_plans(tmp_path: Path, seed: int) -> None:
    out = await Run(tmp_path, seed=seed, jobs=2_000, kills=60).run()
    print(out.text())
    assert out.ok, out.text()
