"""A process of loops: it ends when it is told to, and fails with its loops."""

import asyncio
import gc
import signal
import subprocess
import sys

import pytest

from wms.bus.connection_settings import KafkaSettings
from wms.bus.kafka import Kafka
from wms.runtime.loop import LoopEnded, NamedLoop
from wms.runtime.process import COLLECT_AFTER, LoopProcess, NewCluster, check_cluster


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


LOOKED_AT = 40_000
"""The most objects that a collection of the young may look at: 20 ms."""


def test_no_collection_of_the_young_looks_at_many_objects() -> None:
    sizes: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] < 2:
            sizes.append(sum(len(gc.get_objects(each)) for each in range(info["generation"] + 1)))

    before = gc.get_threshold()
    gc.collect()
    gc.callbacks.append(note)
    gc.set_threshold(*COLLECT_AFTER)
    try:
        held = [[n] for n in range(300_000)]
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(note)
    assert len(sizes) > 20
    assert max(sizes) < LOOKED_AT + 1_000 < len(held)


HANGING = """
import asyncio, sys, threading, time

from wms.runtime import process
from wms.runtime.loop import NamedLoop

process.END_SECONDS = 1.0

async def stubborn():
    try:
        print("up", flush=True)
        await asyncio.Event().wait()
    finally:
        match sys.argv[1]:
            case "a blocked event loop":
                threading.Event().wait()
            case "a task that waits":
                while True:
                    try:
                        await asyncio.Event().wait()
                    except asyncio.CancelledError:
                        pass
            case "a thread":
                asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)

async def main():
    hanging = process.LoopProcess()
    hanging.end_in_time()
    hanging.add(NamedLoop("stubborn", stubborn))
    await hanging.run_loops()

asyncio.run(main())
"""


@pytest.mark.parametrize("what", ["a blocked event loop", "a task that waits", "a thread"])
def test_a_process_that_hangs_at_its_end_exits_at_its_deadline(what: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HANGING, what], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGTERM)
        try:
            _, log = process.communicate(timeout=20)
        finally:
            process.kill()
    assert process.returncode == 1
    assert "Timeout" in log, "the log says where it hung"
