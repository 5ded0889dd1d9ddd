"""Compressed batches: those that would grow over the bound are set aside, whatever the codec; the partition goes on."""

import gzip
import subprocess
import sys
from collections.abc import AsyncIterator

import aiokafka.codec
import cramjam
import pytest
import pytest_asyncio
from aiokafka import AIOKafkaProducer
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from tests.contract.bus.instances import Bus, Keys, Note
from wms.bus import decompression
from wms.embedded.server import KafkaServer
from wms.messages.wire import encode

CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
MIB = 1024 * 1024


@pytest_asyncio.fixture(loop_scope="session")
async def bus(broker: KafkaServer, database: str, keys: Keys) -> AsyncIterator[Bus]:
    async with Bus.opened(broker, database, keys) as each:
        yield each


async def send_compressed(bus: Bus, codec: str, payloads: list[bytes]) -> None:
    """Send one batch that is compressed, to partition 0."""
    producer = AIOKafkaProducer(
        bootstrap_servers=bus.server.bootstrap,
        compression_type=codec,
        max_batch_size=400 * MIB,
        max_request_size=400 * MIB,
    )
    await producer.start()
    try:
        batch = producer.create_batch()
        for payload in payloads:
            assert batch.append(key=None, value=payload, timestamp=None) is not None
        await (await producer.send_batch(batch, bus.topic.name, partition=0))
    finally:
        await producer.stop()


@pytest.mark.parametrize("codec", CODECS)
async def test_a_batch_that_would_grow_too_large_is_a_dead_letter_and_the_rest_goes_on(
    bus: Bus, codec: str
) -> None:
    # Of snappy's own ratio, a larger one would not pass the broker.
    zeros = b"\0" * (12 * MIB)
    await send_compressed(bus, codec, [encode(Note(n=n)) for n in (1, 2)])
    await send_compressed(bus, codec, [encode(Note(n=0)), zeros])
    await send_compressed(bus, codec, [encode(Note(n=n)) for n in (3, 4)])
    async with bus.instance():
        assert await bus.took_effect(4) == [1, 2, 3, 4]
        await bus.caught_up()
    (letter,) = await bus.letters()
    assert (letter["partition"], letter["message_offset"]) == (0, 3)
    assert "cannot be expanded within 8,388,608 bytes" in letter["error"]


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_within_the_bound_is_what_the_library_makes_of_it(codec: str) -> None:
    for text in (b"", b"x", b"hello" * 1_000, bytes(range(256)) * 20_000):
        packed = getattr(aiokafka.codec, f"{codec}_encode")(text)
        assert decompression._CODECS[f"{codec}_decode"](packed) == text


def test_gzip_of_several_members_is_bounded_as_one() -> None:
    member = gzip.compress(b"\0" * (5 * MIB))
    assert len(decompression._CODECS["gzip_decode"](member)) == 5 * MIB
    with pytest.raises(decompression.TooLarge):
        decompression._CODECS["gzip_decode"](member + member)
    with pytest.raises(ValueError, match="cut off"):
        decompression._CODECS["gzip_decode"](member[:-20])


READ = """
import resource, sys
from wms.bus.reader import Reader
from wms.bus.decompression import FAULT, BoundedRecords
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
records = BoundedRecords(sys.stdin.buffer.read())
found = [record for batch in iter(records.next_batch, None) for record in batch]
assert [record.headers[0][0] is FAULT for record in found] == [True], found
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_300_mib_of_zeros_take_little_memory(codec: str) -> None:
    zeros = bytes(300 * MIB)
    packed = gzip.compress(zeros, 1) if codec == "gzip" else bytes(cramjam.zstd.compress(zeros))
    del zeros
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 2 * MIB)
    builder.append(0, 0, None, b"x", [])
    batch = bytearray(builder.build())
    header = 61
    # What such a batch looks like on the wire: its header says how it is compressed and how long it is.
    batch[21:23] = CODECS[codec].to_bytes(2, "big")
    batch[header:] = packed
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    ran = subprocess.run(
        [sys.executable, "-c", READ], input=bytes(batch), capture_output=True, check=False, timeout=60
    )
    assert ran.returncode == 0, ran.stderr.decode()
    assert int(ran.stdout) < 64 * 1024  # KiB
