"""Topics and messages by an ordinary client."""

import asyncio
import uuid

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.waiting import eventually


async def make_topic(bootstrap: str, partitions: int = 3) -> str:
    name = f"test.{uuid.uuid4().hex}"
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(name, partitions, 1)])
        await eventually(lambda: _has_topic(admin, name))
    finally:
        await admin.close()
    return name


async def _has_topic(admin: AIOKafkaAdminClient, name: str) -> bool:
    return name in await admin.list_topics()


async def consume(bootstrap: str, topic: str, count: int, partitions: int = 3) -> list[int]:
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, p) for p in range(partitions)])
        seen: list[int] = []
        while len(seen) < count:
            batch = await asyncio.wait_for(consumer.getmany(timeout_ms=500), 20)
            for records in batch.values():
                assert all(record.headers == (("h", b"v"),) for record in records)
                seen += [int(record.value) for record in records]
    return sorted(seen)
