"""Predictions: scored when their placements are over, summed up, and read as history."""

from typing import Any

import pytest

from tests.services.brokers import BrokerWorld
from tests.services.world import World
from wms.db import prediction
from wms.ids import CeId


async def keep(world: World, job_id: int, **values: Any) -> None:
    usual = {
        "job_id": job_id, "attempt": 1, "part": "execution", "site": "A", "ce": "ce", "source": "history",
        "class": "c", "bytes": None, "seconds": 100.0, "low": 50.0, "high": 200.0, "model_seconds": 100.0,
        "actual": None,
    } | values  # fmt: skip
    names = ", ".join(usual)
    marks = ", ".join(f"${n}" for n in range(1, len(usual) + 1))
    await world.sql(f"insert into prediction ({names}) values ({marks})", *usual.values())


async def test_calibration_tells_coverage_and_ratio_by_site_and_predictor(the_world: World) -> None:
    for job_id, actual in enumerate((60.0, 100.0, 150.0, 400.0), start=1):
        await keep(the_world, job_id, actual=actual)
    await keep(the_world, 5, site="B", source="benchmark", actual=100.0)
    await keep(the_world, 6)
    async with the_world.db.transaction() as tx:
        a, b = await prediction.calibration(tx, "site", 30.0)
        assert (a["site"], a["predictions"], a["scored"], a["covered"]) == ("A", 5, 4, 0.75)
        assert a["ratio"] == pytest.approx((130 + 180) / 2 / 130)
        assert (a["error_seconds"], b["ratio"], b["covered"]) == (45.0, 1.0, 1.0)
        by = {row["source"]: row["scored"] for row in await prediction.calibration(tx, "predictor", 30.0)}
        assert by == {"history": 4, "benchmark": 1}


async def test_history_is_of_the_class_and_of_the_place(the_world: World) -> None:
    await keep(the_world, 1, actual=60.0)
    await keep(the_world, 2, actual=90.0, **{"class": "other"})
    await keep(the_world, 3, part="stage_in", bytes=1_000, actual=2.0)
    async with the_world.db.transaction() as tx:
        assert [each.seconds for each in await prediction.run_times(tx, ["c"], 10)] == [60.0]
        assert sorted((await prediction.runs_there(tx, 10))[CeId("A", "ce")]) == [60.0, 90.0]
        (moved,) = await prediction.transfers(tx, 10)
        assert (moved.site, moved.size, moved.seconds) == ("A", 1_000, 2.0)


async def test_corrections_are_of_a_site_and_of_all(the_world: World) -> None:
    for job_id in range(1, 4):
        await keep(the_world, job_id, actual=230.0)
    await keep(the_world, 4, site="B", actual=100.0)
    async with the_world.db.transaction() as tx:
        rows = {row["site"]: row for row in await prediction.corrections(tx, 100, 30.0)}
    assert {site: row["count"] for site, row in rows.items()} == {None: 4, "A": 3, "B": 1}
    assert rows["A"]["quantiles"] == [pytest.approx(2.0)] * 3
    assert rows["B"]["quantiles"][1] == pytest.approx(1.0)


async def test_what_never_ran_is_closed_without_a_truth(the_world: World) -> None:
    brokers = BrokerWorld(the_world)
    await brokers.advertise("A")
    (job_id,) = await brokers.submitted()
    await brokers.step()
    async with the_world.db.transaction() as tx:
        assert await prediction.score(tx, 10) == 0
    await brokers.fail(job_id)
    async with the_world.db.transaction() as tx:
        assert await prediction.score(tx, 10) > 0
        assert await prediction.score(tx, 10) == 0
    assert await the_world.sql("select 1 from prediction where actual is not null") == []


async def test_old_ones_are_forgotten(the_world: World) -> None:
    await keep(the_world, 1)
    await keep(the_world, 2)
    await the_world.sql("update prediction set made_at = now() - interval '1 h' where job_id = 1")
    async with the_world.db.transaction() as tx:
        assert await prediction.forget(tx, 60.0, 10) == 1
