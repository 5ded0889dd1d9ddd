"""Access to brokers: their addresses, encryption and credentials."""

import ssl
from typing import Annotated, Any, Literal

import msgspec

from wms.bounds import Line
from wms.bus.door import servers


class BrokerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to reach the brokers."""

    bootstrap: Line = "127.0.0.1:9092"
    """HOST:PORT, several with commas between, or `unix:/path/to/NAME.sock` of a broker that `wms up` keeps."""
    fetch_wait_ms: Annotated[int, msgspec.Meta(ge=0, le=60_000)] = 100
    """How long a broker may hold a fetch that finds nothing. 0 for the embedded broker, which does not wake a held
    fetch: it is asked again at intervals.
    """
    idempotent: bool = True
    """Whether the producer numbers its messages, so that the broker drops duplicates. The embedded broker cannot."""
    replication: Annotated[int, msgspec.Meta(ge=-1, le=1_000)] = 1
    security: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """Whether connections are encrypted (SSL) and authenticated (SASL)."""
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    """The mechanism of SASL."""
    username: Line = ""
    password: Line = ""
    authorities: Line = ""
    """A file with the certificates of authorities that are trusted; empty: those of this machine."""
    certificate: Line = ""
    """A file with our certificate, for brokers that authenticate clients by one."""
    private_key: Line = ""
    """The file with the certificate's key; empty: the certificate's own file."""

    def __repr__(self) -> str:
        return f"Settings({self.bootstrap!r}, {self.security}, {self.username!r})"

    def connection(self) -> dict[str, Any]:
        """Return the arguments of the Kafka library. Raises OSError or ssl.SSLError for files that cannot be used."""
        options: dict[str, Any] = {
            "bootstrap_servers": servers(self.bootstrap),
            "security_protocol": self.security,
        }
        if self.security.endswith("SSL"):
            options["ssl_context"] = self._context()
        if self.security.startswith("SASL"):
            options["sasl_mechanism"] = self.mechanism
            options["sasl_plain_username"] = self.username
            options["sasl_plain_password"] = self.password
        return options

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.authorities or None)
        if self.certificate:
            context.load_cert_chain(self.certificate, self.private_key or None)
        return context
