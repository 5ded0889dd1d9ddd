"""The system under attack, and what an attacker may hold: tokens of any user, site or pilot, and access to the topics."""

import contextlib
import itertools
import zlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec

from wms.auth.keys import load_key
from wms.auth.principal import Kind
from wms.auth.token import Claims, mint
from wms.bus.kafka import Kafka, KafkaSettings
from wms.bus.topics import find
from wms.client import ClientSettings
from wms.client.settings import read_settings
from wms.embedded.keys_and_tokens import VO
from wms.embedded.system import System
from wms.messages.wire import encode
from wms.runtime import clock

LIFETIME_SECONDS = 7 * 86_400.0
"""Of tokens: longer than any run."""
KEY_FILES: dict[Kind, str] = {
    "user": "issuer.pem",
    "service": "issuer.pem",
    "site": "sites.pem",
    "pilot": "pilots.pem",
}


class Target:
    """One running system; `kafka` is a connection of the attacker's."""

    def __init__(self, system: System, kafka: Kafka) -> None:
        self.system = system
        self.kafka = kafka
        self.frozen: set[str] = set()
        """The services that tests have frozen, which their supervisor may replace."""
        self._tokens = itertools.count(1)

    @property
    def root(self) -> Path:
        """The data directory."""
        return self.system.layout.root

    @property
    def database(self) -> str:
        """The URL of the system's database, for checks alone: no attacker has it."""
        assert self.system.facts is not None
        return self.system.facts.postgres_url

    def token(self, claims: Claims) -> str:
        """Return a valid token with these claims, as their issuer would give it."""
        key = load_key(self.system.layout.keys / KEY_FILES[claims.kind])
        return mint(key, claims, LIFETIME_SECONDS, clock.timestamp())

    def user_token(self, owner: str, *rights: str) -> str:
        """Return the token of an ordinary user."""
        return self.token(Claims(kind="user", owner=owner, group="users", vo=VO, rights=frozenset(rights)))

    def site_token(self, site: str) -> str:
        """Return the token of a site."""
        return self.token(Claims(kind="site", owner=f"advertiser of {site}", site=site))

    def settings(self, owner: str) -> ClientSettings:
        """Return the client settings of a user who holds nothing but a token."""
        file = self.root / "tokens" / f"{owner}-{next(self._tokens)}.token"
        file.write_text(self.user_token(owner), "ascii")
        file.chmod(0o600)
        settings = read_settings(self.root, {})
        auth = msgspec.structs.replace(settings.auth, token_file=str(file))
        return msgspec.structs.replace(settings, auth=auth, postgres=None)

    async def send(
        self,
        topic: str,
        messages: Sequence[msgspec.Struct | bytes],
        token: str,
        *,
        partition: int | None = None,
    ) -> None:
        """Send messages under one token, all to one partition if it is given."""
        payloads = [each if isinstance(each, bytes) else encode(each) for each in messages]
        keys = [key_for(topic, partition, n) for n in range(len(payloads))]
        await self.kafka.send_many(topic, keys, payloads, [("authorization", f"Bearer {token}".encode())])


def key_for(topic: str, partition: int | None, n: int) -> bytes:
    """Return a key that leads to this partition; any partition by turns if none is given."""
    count = find(topic).partitions
    wanted = n % count if partition is None else partition
    return next(
        key for m in itertools.count(n) if zlib.crc32(key := f"attack-{m}".encode()) % count == wanted
    )


@contextlib.asynccontextmanager
async def attacked(system: System) -> AsyncIterator[Target]:
    """Yield the system as an attacker sees it, with a connection to its broker."""
    assert system.facts is not None
    kafka = Kafka(msgspec.convert(system.facts.kafka, KafkaSettings), "attacker")
    await kafka.start()
    try:
        yield Target(system, kafka)
    finally:
        await kafka.close()
