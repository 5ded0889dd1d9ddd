"""A real Apache Kafka behind TLS, whose clients come with a token or a password: aiokafka's settings from ours."""

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.certificates import certificate
from tests.conftest import skip_without_apache_kafka
from wms.bus.connection_settings import KafkaSettings
from wms.bus.kafka import Kafka
from wms.bus.topics import Topic
from wms.embedded.apache_kafka import ApacheKafka
from wms.errors import Unavailable
from wms.files import Table, write_secret
from wms.runtime import clock

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]

USER, PASSWORD = "wms", "for tests alone"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
TOPIC = Topic("wms.job.commands", 1)


def settings_of(certificate: Path) -> dict[str, str]:
    """Return a broker's settings. Of tokens it believes what they say: an issuer is not what is tried here."""
    login = f'{PLAIN} username="{USER}" password="{PASSWORD}" user_{USER}="{PASSWORD}";'
    return {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,KAFKA:SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.kafka.plain.sasl.jaas.config": login,
        "listener.name.kafka.oauthbearer.sasl.jaas.config": f'{BEARER} unsecuredLoginStringClaim_sub="{USER}";',
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificate),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificate.with_name("authority.pem")),
    }


def certified(place: Path) -> Path:
    """Make a certificate of 127.0.0.1, which is its own authority. Return the file with it and its key."""
    cert, key = certificate(place)
    (place / "authority.pem").write_text(cert.read_text())
    write_secret(place / "server.pem", key.read_text() + cert.read_text())
    return place / "server.pem"


def token(subject: str, seconds: float) -> str:
    """Return an unsigned token of somebody, good for so long."""
    now = clock.timestamp()
    claims = {"sub": subject, "iat": now, "exp": now + seconds}
    parts = [
        base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=")
        for each in ({"alg": "none"}, claims)
    ]
    return ".".join([*parts, ""])


class EncryptedKafka(ApacheKafka):
    """A broker behind TLS that knows who connects."""

    authority = ""

    @property
    def access(self) -> Table:
        return msgspec.structs.asdict(self.by_password())

    def by_password(self) -> KafkaSettings:
        return KafkaSettings(
            bootstrap=self.bootstrap, security="SASL_SSL", mechanism="PLAIN", username=USER, password=PASSWORD,
            authorities=self.authority,
        )  # fmt: skip

    def by_token(self, file: Path) -> KafkaSettings:
        return KafkaSettings(
            bootstrap=self.bootstrap, security="SASL_SSL", mechanism="OAUTHBEARER", token_file=str(file),
            authorities=self.authority,
        )  # fmt: skip


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def encrypted(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EncryptedKafka]:
    skip_without_apache_kafka()
    place: Path = tmp_path_factory.mktemp("encrypted")
    certificate = certified(place)
    server = EncryptedKafka(place / "kafka", settings=settings_of(certificate))
    server.authority = str(certificate.with_name("authority.pem"))
    async with server:
        yield server


async def sends(settings: KafkaSettings) -> None:
    kafka = Kafka(settings, "test")
    try:
        await kafka.start([TOPIC])
        await kafka.send(TOPIC.name, "key", b"{}")
    finally:
        await kafka.close()


async def test_a_password_and_the_authority_open_the_broker(encrypted: EncryptedKafka) -> None:
    await sends(encrypted.by_password())


async def test_a_token_that_was_replaced_meanwhile_opens_the_broker(
    encrypted: EncryptedKafka, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    write_secret(file, token(USER, -60))
    with pytest.raises(Unavailable):
        await sends(encrypted.by_token(file))
    write_secret(file, token(USER, 600))
    await sends(encrypted.by_token(file))


async def test_without_its_authority_no_secret_is_sent_to_the_broker(encrypted: EncryptedKafka) -> None:
    with pytest.raises(Unavailable):
        await sends(replace(encrypted.by_password(), authorities=""))


async def test_a_wrong_password_and_a_missing_token_are_refused(
    encrypted: EncryptedKafka, tmp_path: Path
) -> None:
    for each in (
        replace(encrypted.by_password(), password="a guess"),
        encrypted.by_token(tmp_path / "missing"),
    ):
        with pytest.raises(Unavailable):
            await sends(each)
