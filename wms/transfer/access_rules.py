"""A site's rules on the URLs of jobs' files: allowed schemes, hosts, addresses, and directories of the node."""

import ipaddress
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Annotated, TypeAlias

import msgspec

from wms.bounds import Line, Lines
from wms.errors import Rejected
from wms.transfer.file_url import FileUrl

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

REFUSED = "URL_REFUSED"
"""The error code for a URL that the site's rules exclude."""
_METADATA = frozenset(map(ipaddress.ip_address, ("100.100.100.200", "168.63.129.16", "fd00:ec2::254")))
"""Addresses of clouds' metadata services, besides the link-local ones."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class AccessRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A site's rules on the URLs that jobs may use. By default files of the node are excluded, and loopback and link-local addresses."""

    schemes: Lines = msgspec.field(default_factory=lambda: ["file", "http", "https", "dav", "davs", "s3"])
    """The schemes of URLs that jobs may use.

    `root`, `gsiftp` and `srm` follow redirections unchecked; add them if the storage is trusted.
    """
    hosts: Lines = msgspec.field(default_factory=lambda: ["*"])
    """Patterns of the hosts, and of the buckets of `s3` URLs, that jobs may use. A redirection must lead to one of them too."""
    inner_hosts: Lines = []
    """Names of hosts that jobs may use although they have a loopback or link-local address."""
    directories: Lines = []
    """Directories of the node. A `file:` URL must lead to a path below one of them, after symbolic links are resolved."""
    redirects: Annotated[int, msgspec.Meta(ge=0, le=20)] = 5
    """How many redirections are followed for one file at most."""

    def check(self, url: FileUrl) -> None:
        """Raise Rejected (URL_REFUSED) if the rules exclude the URL: its scheme, host or path, or the address if the host is given as one.

        The text of the error says what is allowed.
        """
        if url.scheme not in self.schemes:
            raise _refused(url, f"this site allows the schemes {_listed(self.schemes)}")
        if url.scheme == "file":
            self.check_path(url, url.path)
            return
        if not any(fnmatchcase(url.host, each.casefold()) for each in self.hosts):
            raise _refused(url, f"this site allows the hosts {_listed(self.hosts)}")
        if url.scheme != "s3" and (address := _literal(url.host)) is not None:
            self.check_address(url.host, address)

    def check_path(self, url: FileUrl, path: str) -> None:
        """Raise Rejected unless the path is below an allowed directory of the node. The caller has resolved its symbolic links."""
        pure = PurePosixPath(path)
        if ".." not in pure.parts and any(pure.is_relative_to(each) for each in self.directories):
            return
        allowed = _listed(self.directories) if self.directories else "none"
        raise _refused(url, f"this site allows files below these directories: {allowed}")

    def check_address(self, host: str, address: Address) -> None:
        """Raise Rejected if `address`, which `host` resolves to, is loopback, link-local or that of a metadata service."""
        if host in self.inner_hosts or not is_inner(address):
            return
        raise Rejected(
            REFUSED,
            f"{host} has the address {address}, which is the node's own or of its link",
            "use another host; a site allows one by `inner_hosts` of `[transfers.access]`",
        )


def is_inner(address: Address) -> bool:
    """Return whether an address is loopback, link-local, multicast, unspecified, reserved, or a cloud's metadata service."""
    address = _unwrapped(address)
    return (
        address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or address.is_reserved
        or address in _METADATA
    )


def _unwrapped(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address embeds, or `address` itself if it embeds none."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    inside = address.ipv4_mapped or address.sixtofour
    if inside is None and address in _NAT64:
        inside = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return inside or address


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _listed(names: Iterable[Line]) -> str:
    return ", ".join(names)[:500]


def _refused(url: FileUrl, allowed: str) -> Rejected:
    return Rejected(REFUSED, f"{url} may not be used here: {allowed}", "use another URL or another site")
