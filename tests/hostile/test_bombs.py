"""Compressed batches that would grow without bound: memory stays bounded and their topic is read on."""

import psutil
from aiokafka import AIOKafkaProducer

from tests.hostile.innocent import Innocent
from tests.hostile.target import Target
from wms.bus.topics import SHARED
from wms.bus.unix_socket import servers
from wms.embedded.layout import SERVICES

MIB = 1024 * 1024
ZEROS = 16 * MIB
"""Twice what is expanded; to compress more would keep this very process busy, in which the innocent user's jobs are timed."""
MORE_MEMORY = 200 * MIB
CODECS = ("gzip", "zstd")


async def test_megabytes_of_zeros_in_a_few_kilobytes_harm_nobody_in_any_topic(
    target: Target, innocent: Innocent
) -> None:
    assert target.system.broker is not None
    before = _memory(target)
    async with innocent.beside():
        for codec in CODECS:
            producer = AIOKafkaProducer(
                bootstrap_servers=servers(target.system.broker.bootstrap),
                compression_type=codec,
                max_batch_size=200 * MIB,
                max_request_size=200 * MIB,
            )
            await producer.start()
            try:
                for topic in SHARED:
                    batch = producer.create_batch()
                    assert batch.append(key=b"k", value=b"\0" * ZEROS, timestamp=None) is not None
                    await (await producer.send_batch(batch, topic.name, partition=0))
            finally:
                await producer.stop()
    more = {name: used - before[name] for name, used in _memory(target).items()}
    assert max(more.values()) < MORE_MEMORY, more


def _memory(target: Target) -> dict[str, int]:
    """Return what each service has in memory, in bytes."""
    children = target.system.state().children
    return {
        name: psutil.Process(each.pid).memory_info().rss
        for name, each in children.items()
        if each.pid is not None and name in SERVICES
    }
