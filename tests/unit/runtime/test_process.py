"""A process of loops: it ends when it is told to, and fails with its loops."""

import asyncio

import pytest

from wms.bus.connection_settings import KafkaSettings
from wms.bus.kafka import Kafka
from wms.runtime.loop import LoopEnded, NamedLoop
from wms.runtime.process import LoopProcess, NewCluster, check_cluster


async def test_all_loops_run_until_it_is_stopped() -> None:
    process = LoopProcess()
    done: list[str] = []

    async def work() -> None:
        done.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            done.append("ended")

    async def stop() -> None:
        process.stop()
        await asyncio.Event().wait()

    process.add(NamedLoop("work", work))
    await process.run_loops([NamedLoop("stop", stop)])
    assert done == ["begun", "ended"]


async def test_a_loop_that_ends_by_itself_ends_the_process() -> None:
    process = LoopProcess()

    async def nothing() -> None:
        return

    process.add(NamedLoop("nothing", nothing))
    with pytest.raises(ExceptionGroup) as caught:
        await process.run_loops()
    assert isinstance(caught.value.exceptions[0], LoopEnded)


async def test_another_cluster_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = Kafka(KafkaSettings(), "test")
    kafka.cluster_id = "one"

    async def other() -> str:
        return "other"

    monkeypatch.setattr(kafka, "read_cluster_id", other)
    with pytest.raises(NewCluster):
        await check_cluster(kafka)
