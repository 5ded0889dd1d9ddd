"""The address of a gateway, which gets a token with each request, and the variables of the environment that name them."""

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from wms.errors import Rejected

PREFIX: Final = "/api/v1"
"""Where the paths of the gateway's interface begin, after its address."""
TOKEN_VARIABLE: Final = "WMS_TOKEN"  # noqa: S105 - a name
"""The environment variable with the path of the token's file."""
URL_VARIABLE: Final = "WMS_URL"
"""The environment variable with the address of a gateway, which takes precedence over a data directory's settings."""
AUTHORITIES_VARIABLE: Final = "WMS_AUTHORITIES"
"""The environment variable with the path of the certificates of authorities that the gateway's certificate is checked with."""


def checked_url(url: str) -> str:
    """Return the gateway's address without a slash at its end.

    Raise Rejected (BAD_GATEWAY) if it is no http or https URL, or is http to another machine than this one.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host or parts.scheme not in {"https", "http"} or parts.query or parts.username or port == 0:
        raise Rejected("BAD_GATEWAY", "that is no address of a gateway", "write https://HOST:PORT")
    if parts.scheme == "http" and not _is_here(host):
        raise Rejected("BAD_GATEWAY", f"your token would go to {host} in clear", f"write https://{host}")
    return url.rstrip("/")


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
