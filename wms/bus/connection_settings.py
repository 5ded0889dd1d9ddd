"""How Kafka brokers are reached: their addresses, encryption and credentials."""

import asyncio
import ssl
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from aiokafka.abc import AbstractTokenProvider

from wms.bounds import Line
from wms.bus.unix_socket import servers


class KafkaSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the Kafka brokers are reached: addresses, encryption and credentials."""

    bootstrap: Line = "127.0.0.1:9092"
    """The brokers' addresses: HOST:PORT, several separated by commas, or `unix:/path/to/NAME.sock` of a broker run by `wms up`."""
    fetch_wait_ms: Annotated[int, msgspec.Meta(ge=0, le=60_000)] = 100
    """The longest time, in milliseconds, for which a Kafka broker may hold a fetch while there are no messages.

    It is 0 for the embedded broker, which does not answer a held fetch when messages arrive. The reader then polls at intervals.
    """
    idempotent: bool = True
    """Whether sent messages are numbered, so that the Kafka broker drops duplicates. The embedded broker does not support that."""
    replication: Annotated[int, msgspec.Meta(ge=-1, le=1_000)] = 1
    security: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """Whether connections are encrypted (SSL) and authenticated (SASL)."""
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = "SCRAM-SHA-512"
    """How clients prove who they are if `security` has SASL. OAUTHBEARER sends the token in `token_file`."""
    username: Line = ""
    password: Line = ""
    token_file: Line = ""
    """A file with a token for OAUTHBEARER, read anew for each connection: whoever renews tokens replaces the file."""
    authorities: Line = ""
    """A file with the certificates of trusted authorities; empty for the authorities that this machine trusts."""
    certificate: Line = ""
    """A file with the client certificate, for brokers that authenticate clients by certificate."""
    private_key: Line = ""
    """The file with the private key of the client certificate; empty if the certificate's file has it."""

    def __repr__(self) -> str:
        return f"Settings({self.bootstrap!r}, {self.security}, {self.username!r})"

    def connection(self) -> dict[str, Any]:
        """Return the settings as keyword arguments for the Kafka library's clients, the password included.

        Raise OSError or ssl.SSLError if a certificate file is unusable.
        """
        options: dict[str, Any] = {
            "bootstrap_servers": servers(self.bootstrap),
            "security_protocol": self.security,
        }
        if self.security.endswith("SSL"):
            options["ssl_context"] = self._context()
        if self.security.startswith("SASL"):
            options |= self._sasl()
        return options

    def _sasl(self) -> dict[str, Any]:
        if self.mechanism == "OAUTHBEARER":
            return {
                "sasl_mechanism": self.mechanism,
                "sasl_oauth_token_provider": BearerToken(self.token_file),
            }
        return {
            "sasl_mechanism": self.mechanism,
            "sasl_plain_username": self.username,
            "sasl_plain_password": self.password,
        }

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.authorities or None)
        if self.certificate:
            context.load_cert_chain(self.certificate, self.private_key or None)
        return context


class BearerToken(AbstractTokenProvider):  # type: ignore[misc] # the library has no types
    """The OAUTHBEARER token of a client of Kafka, kept in a file."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    async def token(self) -> str:
        """Return the token that the file holds now. Raise OSError if it cannot be read."""
        return (await asyncio.to_thread(self._path.read_text, "utf-8")).strip()
