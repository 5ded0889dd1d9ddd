"""The gateway's configuration file: its tables, their settings, and the defaults."""

from ipaddress import ip_address
from typing import Annotated

from msgspec import Meta

from wms.bounds import GivenName, Line
from wms.runtime.config import Seconds, Section, ServiceConfig
from wms.transfer.s3_settings import S3Settings


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class GatewaySettings(Section, frozen=True, kw_only=True):
    """The table `[gateway]`: listening address, TLS certificate, timeouts, and limits on connections and parallel requests."""

    host: GivenName = "127.0.0.1"
    """The address to listen on. Unless it is a loopback address, a certificate or a TLS proxy (`behind_proxy`) is required."""
    port: Annotated[int, Meta(ge=1, le=65_535)] = 8480
    certificate: Line = ""
    """The path of a PEM file with the TLS certificate and its chain. With it the gateway accepts only HTTPS; empty: plain HTTP."""
    private_key: Line = ""
    """The path of the PEM file with the certificate's private key; empty if the certificate's file contains the key."""
    behind_proxy: bool = False
    """Whether a reverse proxy in front of the gateway does TLS. Then the gateway may listen on any address without a certificate."""
    answer_seconds: Seconds = 30.0
    """How long a request waits for a service's reply, in seconds; after that it is answered with status 503."""
    read_seconds: Seconds = 30.0
    """How long the gateway waits for a request's headers, or for more of its body, in seconds.

    After that it cuts the connection, or answers with status 408.
    """
    write_seconds: Seconds = 30.0
    """How long a client may leave a response unread, in seconds; after that its connection is cut."""
    connections: Annotated[int, Meta(ge=1, le=1_000_000)] = 20_000
    """The most open connections. For a further one, an older one without a valid token gives way, of the address that has most of them.

    Without such a one, an idle connection gives way; if all are in work, the new one is cut. An attached pilot has two connections.
    """
    address_connections: Annotated[int, Meta(ge=1, le=1_000_000)] = 12_000
    """The most open connections from one client address; further ones are cut at once. Many pilots of a site may share one address.

    Behind a proxy this limit does not apply.
    """
    owner_requests: Annotated[int, Meta(ge=1, le=100_000)] = 100
    """The most requests of one owner at the same time, including streams of events; further ones are answered with status 429."""

    transfers: Annotated[int, Meta(ge=1, le=100_000)] = 1_000
    """The most archives on their way at a time, up and down; further ones wait for up to `answer_seconds`. Each may have one more open file."""
    owner_transfers: Annotated[int, Meta(ge=1, le=100_000)] = 20
    """The most archives on their way of one owner, or of one pilot; further ones wait for up to `answer_seconds`."""
    transfer_rate: Annotated[float, Meta(ge=1, le=1e9)] = 20_000.0
    """The lowest rate in bytes per second of an archive's transfer, once `read_seconds` or `write_seconds` are used. Slower ones are cut off.

    Who downloads may go on where it ended, by the header `Range`.
    """
    temporary_mb: Annotated[int, Meta(ge=101, le=10_000_000)] = 4_096
    """The most megabytes of archives in the temporary directory: uploads, and one copy of each object of S3 that is being sent.

    An owner or pilot that has some of them gets no more while less would be left to others than it then had.
    """

    def __post_init__(self) -> None:
        if not (self.certificate or self.behind_proxy or _is_loopback(self.host)):
            raise ValueError(f"{self.host}: other machines would send tokens in clear; set `certificate`")

    @property
    def url(self) -> str:
        """The base URL of the gateway, without a path: scheme, host and port as configured."""
        return f"{'https' if self.certificate else 'http'}://{self.host}:{self.port}"


class GatewayStore(Section, frozen=True, kw_only=True):
    """The table `[sandboxes]`: the store of input and output archives."""

    url: Line = ""
    """The store's URL: `file:///absolute/directory` or `s3://bucket/prefix`. If empty, the gateway transfers no files."""
    s3: S3Settings = S3Settings()
    """The server and credentials of an S3 store. Clients never get the credentials, only signed URLs of single objects."""
    signed_url_seconds: Annotated[float, Meta(ge=1, le=86_400)] = 600.0
    """How long a signed URL of the S3 store is valid, in seconds."""


Rate = Annotated[float, Meta(gt=0, le=1e6)]


class RequestLimits(Section, frozen=True, kw_only=True):
    """The table `[requests]`: request rates per second, and bursts after a pause, for each token, owner, pilot and client address.

    Requests over a rate are answered with status 429 and `Retry-After`.
    """

    token_per_second: Rate = 200.0
    token_burst: Rate = 1_000.0
    """The number of requests that one token may make at once after a pause."""
    owner_per_second: Rate = 400.0
    owner_burst: Rate = 2_000.0
    address_per_second: Rate = 1_000.0
    address_burst: Rate = 4_000.0
    pilot_per_second: Rate = 50.0
    pilot_burst: Rate = 500.0
    site_address_per_second: Rate = 2_000.0
    """The rate of pilots' requests from one client address, which many pilots of a site may share.

    Requests with a token that was valid before do not count.
    """
    site_address_burst: Rate = 20_000.0


class Config(ServiceConfig, frozen=True, kw_only=True):
    """The gateway's configuration file: the tables of every service, and `[gateway]`, `[requests]` and `[sandboxes]`."""

    gateway: GatewaySettings = GatewaySettings()
    requests: RequestLimits = RequestLimits()
    sandboxes: GatewayStore = GatewayStore()
