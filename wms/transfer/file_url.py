"""The URL of a file that a job reads or writes, and how it is told without the secrets that it may hold."""

import re
from typing import Self
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

import msgspec

from wms.errors import Rejected

HIDDEN = "..."
_SECRETS = re.compile(r"(://)[^/\s@]*@|\?[^\s'\"<>)]*")


class FileUrl(msgspec.Struct, frozen=True):
    """A URL whose scheme is known, and whose text must not be told: `str` gives it without its query and its user."""

    text: str
    """The URL as it was given. It may hold a signature."""
    scheme: str
    """The scheme in lower case."""
    host: str
    """The host in lower case, or the bucket of an `s3` URL; empty for files of the node."""
    path: str
    """The path, decoded for files of the node and objects of S3, else as it was given."""
    is_signed: bool
    """Whether it has a query, which storages take for a signature."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a URL. Raises Rejected (URL_UNREADABLE) unless it has a scheme and a path, and a host where it needs one."""
        try:
            parts = urlsplit(text)
            host = (parts.hostname or "").casefold()
            parts.port  # noqa: B018 - raises for a port that is no number
        except ValueError as error:
            raise _unreadable(text, str(error)) from None
        scheme = parts.scheme.casefold()
        if not scheme or not text.isprintable() or " " in text:
            raise _unreadable(text, "it has no scheme, or characters that no URL has")
        if scheme == "file":
            return cls(text, scheme, "", _local_path(text, parts, host), is_signed=False)
        if not host or not parts.path.strip("/"):
            raise _unreadable(text, "it names no host or no file")
        path = unquote(parts.path) if scheme == "s3" else parts.path
        return cls(text, scheme, host, path, is_signed=bool(parts.query))

    @property
    def endpoint(self) -> str:
        """The scheme, host and port, without user and path: `https://store.example.org:8443`."""
        parts = urlsplit(self.text)
        return f"{self.scheme}://{parts.netloc.rpartition('@')[2]}"

    def beside(self, suffix: str) -> Self:
        """Return the URL of another file in the same directory, whose name is this one's with a suffix."""
        parts = urlsplit(self.text)
        return type(self).parse(urlunsplit((*parts[:2], parts.path + suffix, *parts[3:])))

    def with_scheme(self, scheme: str) -> str:
        """Return the text of the URL under another scheme."""
        return f"{scheme}:{self.text.partition(':')[2]}"

    def __str__(self) -> str:
        return redacted(self.text)


def redacted(text: str) -> str:
    """Return a text in which no URL has a query or a user any more, since both may be secrets."""
    return _SECRETS.sub(lambda found: f"{found[1]}{HIDDEN}@" if found[1] else f"?{HIDDEN}", text)


def _local_path(text: str, parts: SplitResult, host: str) -> str:
    path = unquote(parts.path)
    if host not in ("", "localhost") or not path.startswith("/") or "\0" in path:
        raise _unreadable(text, "a file URL is file:///path")
    return path


def _unreadable(text: str, reason: str) -> Rejected:
    return Rejected("URL_UNREADABLE", f"{redacted(text)[:300]} is not the URL of a file: {reason}")
