"""Checks the URL of a gateway, to which a client sends its token, and names the environment variables for URL and token."""

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from wms.errors import Rejected

PREFIX: Final = "/api/v1"
"""The path, after the gateway's base URL, with which the paths of all operations begin."""
TOKEN_VARIABLE: Final = "WMS_TOKEN"  # noqa: S105 - a name
"""The environment variable with the path of the file that contains the user's token."""
URL_VARIABLE: Final = "WMS_URL"
"""The environment variable with the base URL of a gateway. If set, it overrides the settings in a data directory."""
AUTHORITIES_VARIABLE: Final = "WMS_AUTHORITIES"
"""The environment variable with the path of a PEM file of certificate authorities, against which the gateway's certificate is verified."""


def checked_url(url: str) -> str:
    """Return the gateway's base URL without trailing slashes.

    Raise Rejected (BAD_GATEWAY) if it is not an http or https URL with a host, or is plain http to another machine.
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
