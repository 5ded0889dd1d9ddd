"""What the embedded broker's door costs: messages sent and read through it and over the loopback, in turns of a moment each."""

import contextlib
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil

from bench.measuring import Figures, run
from bench.validity import InvalidError
from wms.bus.kafka import Kafka, KafkaSettings, Reader
from wms.bus.topics import Topic
from wms.embedded.kafka_broker import KafkaBroker
from wms.embedded.network_namespace import NetworkIsolation, isolation

BATCH, BYTES, TURN = 256, 500, 8
"""Messages of a batch, bytes of a message, batches of a turn."""
TOPIC = Topic("wms.bench.unix_socket", 1, 1)


class Way:
    """One way to a broker of its own."""

    def __init__(self, broker: KafkaBroker, kafka: Kafka, reader: Reader) -> None:
        self._broker = broker
        self._kafka = kafka
        self._reader = reader
        self.seconds: list[float] = []
        self.cpu: list[float] = []

    async def turn(self) -> None:
        """Send and read some batches, one after the other."""
        began, cpu = time.perf_counter(), self._cpu()
        for _ in range(TURN):
            await self._kafka.send_many(TOPIC.name, [b"k"] * BATCH, [b"x" * BYTES] * BATCH)
            left = BATCH
            while left > 0:
                self._reader.hurry()
                left -= len(await self._reader.poll(1.0, BATCH))
        self.seconds.append(time.perf_counter() - began)
        self.cpu.append(self._cpu() - cpu)

    def _cpu(self) -> float:
        used = psutil.Process(self._broker.pid).cpu_times()
        return time.process_time() + used.user + used.system


@contextlib.asynccontextmanager
async def way(isolate: NetworkIsolation | None) -> AsyncIterator[Way]:
    """Start a broker, and connect to it."""
    with tempfile.TemporaryDirectory(prefix="wms-bench-") as place:
        async with KafkaBroker(Path(place), isolate=isolate) as broker:
            kafka = Kafka(
                KafkaSettings(bootstrap=broker.bootstrap, idempotent=False, fetch_wait_ms=0), "bench"
            )
            await kafka.start([TOPIC])
            reader = await kafka.reader(TOPIC.name)
            reader.assign({0: 0})
            yield Way(broker, kafka, reader)
            await reader.close()
            await kafka.close()


async def measure(turns: int) -> Figures:
    """Take turns between the two ways."""
    if (isolate := isolation()) is None:
        raise InvalidError("this machine allows no network namespace")
    async with way(None) as loopback, way(isolate) as door:
        for number in range(turns):
            for each in (loopback, door) if number % 2 else (door, loopback):
                await each.turn()
    messages = BATCH * TURN
    return {
        "loopback_per_second": round(messages / statistics.median(loopback.seconds)),
        "door_per_second": round(messages / statistics.median(door.seconds)),
        "loopback_cpu_us": round(1e6 * sum(loopback.cpu) / turns / messages, 1),
        "door_cpu_us": round(1e6 * sum(door.cpu) / turns / messages, 1),
    }


if __name__ == "__main__":
    run("door", measure, turns=60)
