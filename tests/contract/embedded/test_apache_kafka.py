"""What only Apache Kafka does."""

import pytest
from aiokafka import AIOKafkaProducer

from tests.contract.embedded.topics import consume, make_topic
from wms.embedded.apache_kafka import ApacheKafka


@pytest.mark.kafka
async def test_apache_takes_an_idempotent_producer(apache_kafka: ApacheKafka) -> None:
    topic = await make_topic(apache_kafka.bootstrap)
    async with AIOKafkaProducer(
        bootstrap_servers=apache_kafka.bootstrap, enable_idempotence=True
    ) as producer:
        for n in range(50):
            await producer.send(topic, str(n).encode(), headers=[("h", b"v")])
    assert await consume(apache_kafka.bootstrap, topic, 50) == list(range(50))
