"""How to reach brokers: their addresses, and what they ask of those who come."""

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
    """How long a broker may hold a fetch that finds nothing. 0 for one that does not wake it early, as the embedded one: it
    is asked anew from time to time."""
    idempotent: bool = True
    """Whether the producer numbers its messages, so that a broker drops those sent twice. The embedded cannot."""
    replication: Annotated[int, msgspec.Meta(ge=-1, le=1_000)] = 1
    security: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """Whether connections are encrypted (SSL), and whether we say who we are (SASL)."""
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    """How we prove it."""
    username: Line = ""
    password: Line = ""
    authorities: Line = ""
    """A file of certificates that may vouch for the brokers; empty: whom this machine trusts."""
    certificate: Line = ""
    """A file with our certificate, for brokers that ask for one."""
    private_key: Line = ""
    """The file with its key; empty: in the same file."""

    def __repr__(self) -> str:
        return f"Settings({self.bootstrap!r}, {self.security}, {self.username!r})"

    def connection(self) -> dict[str, Any]:
        """Return what the Kafka library is told of it. Raises OSError, or ssl.SSLError, for files that cannot be used."""
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
