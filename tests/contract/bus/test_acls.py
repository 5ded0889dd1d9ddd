"""Access rules on a real Apache Kafka that refuses what no rule allows: who may write and read which topic, tried one by one."""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from services.matcher.config import Config as MatcherConfig
from services.matcher.service import build as matcher
from tests.conftest import skip_without_apache_kafka
from tests.services.hosting import hosted
from tests.waiting import eventually
from wms.auth.keys import generate_keys, load_key
from wms.auth.token import Claims, mint
from wms.bus import acls
from wms.bus.connection_settings import KafkaSettings
from wms.bus.inbox import Inbox
from wms.bus.kafka import Kafka
from wms.bus.topics import SHARED, Topic, site_inbox_of, user_inbox
from wms.db import ad, instance
from wms.embedded.apache_kafka import ApacheKafka
from wms.embedded.server import Program
from wms.errors import Rejected, Unavailable
from wms.files import Table, to_toml, write_secret
from wms.messages import ads, commands, events, match_requests, queries, reports
from wms.messages.wire import Codec

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(120)]

ADMIN, SERVICE, ALICE, BOB, SITES, PILOTS = "admin", "wms", "alice", "bob", "sites", "pilots"
PASSWORD = "for tests alone"
LOGIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    f' username="{ADMIN}" password="{PASSWORD}" '
    + " ".join(f'user_{each}="{PASSWORD}"' for each in (ADMIN, SERVICE, ALICE, BOB, SITES, PILOTS))
    + ";"
)
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:{ADMIN}",
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,KAFKA:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.kafka.plain.sasl.jaas.config": LOGIN,
    "listener.name.controller.plain.sasl.jaas.config": LOGIN,
}
TOPICS = (*SHARED, user_inbox(ALICE), user_inbox(BOB), site_inbox_of("A"), site_inbox_of("B"))
WRITTEN = {
    SERVICE: {each.name for each in TOPICS},
    ALICE: {commands.TOPIC, queries.TOPIC},
    SITES: {ads.TOPIC},
    PILOTS: {match_requests.TOPIC, reports.TOPIC},
    BOB: set[str](),
}
READ = {
    SERVICE: {each.name for each in TOPICS},
    ALICE: {user_inbox(ALICE).name, events.TOPIC},
    SITES: set[str](),
    PILOTS: {site_inbox_of("A").name},
    BOB: set[str](),
}
"""Bob has no rules at all."""


class GuardedKafka(ApacheKafka):
    """A broker that knows who connects, and refuses what no rule allows."""

    @property
    def access(self) -> Table:
        return msgspec.structs.asdict(self.of(ADMIN))

    def of(self, name: str) -> KafkaSettings:
        return KafkaSettings(
            bootstrap=self.bootstrap,
            security="SASL_PLAINTEXT",
            mechanism="PLAIN",
            username=name,
            password=PASSWORD,
        )


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def guarded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[GuardedKafka]:
    skip_without_apache_kafka()
    place: Path = tmp_path_factory.mktemp("guarded")
    async with GuardedKafka(place / "kafka", settings=SETTINGS) as server:
        rules = [
            *acls.of_services(f"User:{SERVICE}"),
            *acls.of_user(f"User:{ALICE}", ALICE),
            *acls.of_advertiser(f"User:{SITES}"),
            *acls.of_pilots(f"User:{PILOTS}", "A"),
        ]
        await acls.write_rules(server.of(ADMIN), rules)
        kafka = Kafka(server.of(SERVICE), "services")
        await kafka.start(TOPICS)
        await kafka.close()
        yield server


async def may_write(server: GuardedKafka, name: str, topic: Topic) -> bool:
    kafka = Kafka(server.of(name), name)
    try:
        await kafka.start()
        await kafka.send(topic.name, "key", b"{}")
    except (Rejected, Unavailable):
        return False
    finally:
        await kafka.close()
    return True


async def may_read(server: GuardedKafka, name: str, topic: Topic) -> bool:
    kafka = Kafka(server.of(name), name)
    inbox = Inbox[Any](kafka, topic, Codec[Any](commands.Command))
    try:
        await kafka.start()
        await inbox.start()
        await inbox.poll(0.1)
    except (Rejected, Unavailable):
        return False
    finally:
        await inbox.close()
        await kafka.close()
    return True


@pytest.mark.parametrize("name", WRITTEN)
async def test_each_writes_what_the_table_says_and_nothing_else(guarded: GuardedKafka, name: str) -> None:
    written = {each.name for each in TOPICS if await may_write(guarded, name, each)}
    assert written == WRITTEN[name]


@pytest.mark.parametrize("name", READ)
async def test_each_reads_what_the_table_says_and_nothing_else(guarded: GuardedKafka, name: str) -> None:
    read = {each.name for each in TOPICS if await may_read(guarded, name, each)}
    assert read == READ[name]


@contextlib.asynccontextmanager
async def advertiser(server: GuardedKafka, place: Path) -> AsyncIterator[None]:
    """Run a real advertiser of site A under the rules above. Besides its access to Kafka it is given the token of its site alone."""
    generate_keys(place / "keys")
    key = load_key(place / "keys" / "sites.pem")
    token = mint(key, Claims(kind="site", owner="advertiser of A", site="A"), 3_600, time.time())
    write_secret(place / "site" / "token", token)
    told: dict[str, Any] = {
        "kafka": msgspec.to_builtins(server.of(SITES)),
        "advertising": {"token_file": str(place / "site" / "token")},
        "elements": [{"site": "B", "ce": "here", "slots": 3}, {"site": "A", "ce": "here", "slots": 3}],
    }
    write_secret(place / "site" / "advertiser.toml", to_toml(told))
    argv = [sys.executable, "-m", "services.advertiser", "--config", str(place / "site" / "advertiser.toml")]
    async with Program(place / "site", name="advertiser", argv=argv):
        yield


async def test_an_advertiser_with_a_token_and_these_rules_is_heard_in_its_site_alone(
    guarded: GuardedKafka, database: str, tmp_path: Path
) -> None:
    async with advertiser(guarded, tmp_path):
        config = msgspec.convert(
            {
                "auth": {"jwks": str(tmp_path / "keys" / "jwks.json")},
                "postgres": {"url": database},
                "kafka": msgspec.to_builtins(guarded.of(SERVICE)),
            },
            MatcherConfig,
        )
        async with hosted("matcher", config, matcher) as host:
            running = asyncio.create_task(host.run())

            async def heard() -> bool:
                async with host.db.transaction() as tx:
                    told = [each for each in await instance.instances(tx) if each["service"] == "advertiser"]
                    here = {each.ce_id for each in await ad.fresh(tx)} == {("A", "here")}
                    return here and any("may not speak for B" in each["health"] for each in told)

            try:
                await eventually(heard, 60)
            finally:
                host.stop()
                await running


async def test_only_an_administrator_adds_rules(guarded: GuardedKafka) -> None:
    with pytest.raises(Rejected, match="refuses a rule"):
        await acls.write_rules(guarded.of(ALICE), acls.of_services(f"User:{ALICE}"))
