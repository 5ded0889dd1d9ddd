"""The URL of a file that a job reads or writes. It can be shown without the secrets that it may contain."""

import re
from typing import Self
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

import msgspec

from wms.errors import Rejected

HIDDEN = "..."
_SECRETS = re.compile(r"(://)[^/\s@]*@|\?[^\s'\"<>)]*")


class FileUrl(msgspec.Struct, frozen=True):
    """The URL of a job's file. `str` returns it without its query and user name, since both may be secrets."""

    text: str
    """The URL as it was given. It may contain a signature, so it must not be shown."""
    scheme: str
    """The scheme in lower case, such as `https`."""
    host: str
    """The host in lower case, or the bucket of an `s3` URL; empty for files of the node."""
    path: str
    """The path. Percent-encoding is decoded for files of the node and objects of S3."""
    is_signed: bool
    """Whether the URL has a query, which counts as a signature."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a URL. Raise Rejected (URL_UNREADABLE) unless it has a scheme, a path, and, where it needs one, a host."""
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
        """The scheme, host and port of the URL, such as `https://store.example.org:8443`."""
        parts = urlsplit(self.text)
        return f"{self.scheme}://{parts.netloc.rpartition('@')[2]}"

    def beside(self, suffix: str) -> Self:
        """Return the URL of the file whose name is this one's with a suffix, in the same directory."""
        parts = urlsplit(self.text)
        return type(self).parse(urlunsplit((*parts[:2], parts.path + suffix, *parts[3:])))

    def with_scheme(self, scheme: str) -> str:
        """Return the text of the URL with another scheme. It may contain a signature."""
        return f"{scheme}:{self.text.partition(':')[2]}"

    def __str__(self) -> str:
        return redacted(self.text)


def redacted(text: str) -> str:
    """Return a text in which the query and the user of each URL are replaced by dots, since both may be secrets."""
    return _SECRETS.sub(lambda found: f"{found[1]}{HIDDEN}@" if found[1] else f"?{HIDDEN}", text)


def _local_path(text: str, parts: SplitResult, host: str) -> str:
    path = unquote(parts.path)
    if host not in ("", "localhost") or not path.startswith("/") or "\0" in path:
        raise _unreadable(text, "a file URL is file:///path")
    return path


def _unreadable(text: str, reason: str) -> Rejected:
    return Rejected("URL_UNREADABLE", f"{redacted(text)[:300]} is not the URL of a file: {reason}")
