"""The configuration file of the gateway."""

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
    """The address and certificate of the gateway, and how much it accepts at a time."""

    host: GivenName = "127.0.0.1"
    """The address to listen on. Other machines reach it only with a certificate, or through a proxy that has one."""
    port: Annotated[int, Meta(ge=1, le=65_535)] = 8480
    certificate: Line = ""
    """A file with the certificate and its chain. With it the gateway speaks HTTPS alone."""
    private_key: Line = ""
    """The file with the certificate's private key; empty if the certificate's file contains it."""
    behind_proxy: bool = False
    """Whether a proxy before the gateway does TLS, so that the gateway may listen on any address without a certificate."""
    answer_seconds: Seconds = 30.0
    """Seconds to wait for a service's answer."""
    read_seconds: Seconds = 30.0
    """Seconds to wait for a request's headers, and for the pieces of its body."""
    write_seconds: Seconds = 30.0
    """Seconds after which a connection is cut whose reader takes nothing of an answer."""
    connections: Annotated[int, Meta(ge=1, le=1_000_000)] = 20_000
    """The most connections at a time; further ones are told to come again. A pilot has two."""
    address_connections: Annotated[int, Meta(ge=1, le=1_000_000)] = 12_000
    """The most connections of one address at a time; further ones are cut off. A site's pilots may share one. Not counted behind a proxy."""
    owner_requests: Annotated[int, Meta(ge=1, le=100_000)] = 100
    """The most requests of one owner under way at a time, streams of events among them."""

    def __post_init__(self) -> None:
        if not (self.certificate or self.behind_proxy or _is_loopback(self.host)):
            raise ValueError(f"{self.host}: other machines would send tokens in clear; set `certificate`")

    @property
    def url(self) -> str:
        """The URL of the gateway, without a path."""
        return f"{'https' if self.certificate else 'http'}://{self.host}:{self.port}"


class GatewayStore(Section, frozen=True, kw_only=True):
    """The sandbox store of input archives and outputs."""

    url: Line = ""
    """`file:///absolute/directory` or `s3://bucket/prefix`; empty for none: then no files go through the gateway."""
    s3: S3Settings = S3Settings()
    """The server of a store in S3. Its credentials stay here: clients get URLs that are signed for one object."""
    signed_url_seconds: Annotated[float, Meta(ge=1, le=86_400)] = 600.0
    """For how long such a URL is good."""


Rate = Annotated[float, Meta(gt=0, le=1e6)]


class RequestLimits(Section, frozen=True, kw_only=True):
    """The number of requests that one token, owner, pilot and address may make; further requests are told when to come again."""

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
    """How many requests of pilots one address may make, which many pilots of a site may share."""
    site_address_burst: Rate = 20_000.0


class Config(ServiceConfig, frozen=True, kw_only=True):
    """The whole configuration file of the gateway."""

    gateway: GatewaySettings = GatewaySettings()
    requests: RequestLimits = RequestLimits()
    sandboxes: GatewayStore = GatewayStore()
