"""Addresses of index servers and computing elements. Two addresses of the same server have the same key."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from posixpath import normpath
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

from wms.errors import Rejected

Kind: TypeAlias = Literal["index", "element"]

LENGTH_LIMIT = 2_048
PORTS = {"http": 80, "https": 443}
WEB = frozenset(PORTS)
"""The URL schemes that an index on the web may name. `file:` is not among them, so a remote index cannot make this machine read its own files."""
_FORM = re.compile(r"[!-~]+")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_NUMBERED = re.compile(r"[0-9.]+|.*:.*")
_NOWHERE = "none.invalid"
"""A host pattern that matches no host. As the only pattern, it forbids all hosts."""
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")


class Address(NamedTuple):
    """The URL of an index server or of a computing element. An index server lists other servers and computing elements."""

    url: str
    kind: Kind

    @property
    def scheme(self) -> str:
        """The scheme of the URL in lower case, such as https."""
        return urlsplit(self.url).scheme.lower()

    @property
    def host(self) -> str:
        """The host of the URL in lower case, without its port; empty for a file."""
        return (urlsplit(self.url).hostname or "").rstrip(".")

    @property
    def key(self) -> str:
        """The canonical form of the URL. Addresses with the same key are one server, which is asked once."""
        parts = urlsplit(self.url)
        path = normpath(_ESCAPE.sub(_unescaped, parts.path) or "/").replace("//", "/")
        return urlunsplit((self.scheme, _place(parts), path, parts.query, ""))


def address(text: str, kind: Kind, base: str = "") -> Address:
    """Parse `text` as the address of a server of this kind. A relative `text` is resolved against `base`, the URL of the document that contains it.

    Raise Rejected if the text is no URL with a host, is over 2,048 characters long, or contains a user name or password.
    """
    text = text.strip()
    if len(text) > LENGTH_LIMIT or not _FORM.fullmatch(text):
        raise Rejected("ADDRESS_INVALID", f"{text[:100]} is no address")
    try:
        url = urljoin(base, text)
        parts = urlsplit(url)
        named = parts.hostname if parts.port != 0 else None
    except ValueError as error:
        raise Rejected("ADDRESS_INVALID", f"{text[:100]}: {error}") from None
    if parts.username or parts.password:
        raise Rejected("ADDRESS_INVALID", "an address with a password in it is not asked")
    if not parts.scheme or not (named or parts.scheme == "file"):
        raise Rejected("ADDRESS_INVALID", f"{text[:100]} names no server")
    return Address(url, kind)


def refusal(of: Address, by: Address | None, hosts: Sequence[str]) -> str:
    """Return why the address `of`, which the index `by` gave, may not be asked; empty if it may.

    `by` is None for an address from the configuration, which may always be asked. `hosts` are patterns such as `*.example.org` of hosts
    that may be asked; empty: all.
    """
    if by is None:
        return ""
    if of.scheme not in WEB and not (of.scheme == by.scheme == "file"):
        return f"{of.scheme}: an index may not lead there"
    if by.scheme == "https" and of.scheme == "http":
        return "http: one that is known for sure leads to one that is not"
    if hosts and of.host and not any(fnmatchcase(of.host, each.lower()) for each in hosts):
        return f"{of.host} is none of the hosts that may be asked"
    return ""


def near(urls: Sequence[str]) -> list[str]:
    """Return host patterns that match the hosts of these URLs and every other host in their domains.

    Without any host in the URLs, the result is one pattern that matches no host.
    """
    hosts = {address(each, "index").host for each in urls}
    domains = {host.partition(".")[2] for host in hosts if not _NUMBERED.fullmatch(host)}
    # A domain without a dot is that of a country, and not of an organisation.
    near_by = {f"*.{each}" for each in domains if "." in each}
    return sorted((hosts | near_by) - {""}) or [_NOWHERE]


def _place(parts: SplitResult) -> str:
    host = (parts.hostname or "").rstrip(".")
    host = f"[{host}]" if ":" in host else host
    port = parts.port
    return host if port in (None, PORTS.get(parts.scheme.lower())) else f"{host}:{port}"


def _unescaped(found: re.Match[str]) -> str:
    character = chr(int(found[1], 16))
    return character if _UNRESERVED.fullmatch(character) else found[0].upper()
