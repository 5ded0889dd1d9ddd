"""Checksums of files, written as `sha256:`, `md5:` or `adler32:` and hexadecimal digits."""

import hashlib
import zlib
from pathlib import Path
from typing import Protocol, Self

import msgspec

from wms.errors import Rejected

_CHUNK = 1024 * 1024
_DIGITS = {"sha256": 64, "md5": 32, "adler32": 8}


class Checksum(msgspec.Struct, frozen=True):
    """A checksum of a file, with the algorithm (sha256, md5 or adler32) that made it."""

    algorithm: str
    digits: str
    """The digits: lower-case hexadecimal, of the algorithm's full length."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a text such as `md5:d41d8...`. Leading zeros of an adler32 may be left out. Raise Rejected (CHECKSUM_UNREADABLE)."""
        algorithm, _, digits = text.casefold().partition(":")
        length = _DIGITS.get(algorithm, 0)
        digits = digits.rjust(length, "0") if algorithm == "adler32" and digits else digits
        if not length or len(digits) != length or not set(digits) <= set("0123456789abcdef"):
            raise Rejected(
                "CHECKSUM_UNREADABLE",
                f"{text[:100]!r} is no checksum",
                "write sha256:, md5: or adler32: and all hexadecimal digits",
            )
        return cls(algorithm, digits)

    def __str__(self) -> str:
        return f"{self.algorithm}:{self.digits}"


def checksum_of(path: Path, algorithm: str) -> Checksum:
    """Return the checksum of a file's content. `algorithm` is sha256, md5 or adler32. The call blocks."""
    digest = _hasher(algorithm)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return Checksum(algorithm, digest.hexdigest())


class _Hasher(Protocol):
    def update(self, data: bytes, /) -> None: ...
    def hexdigest(self) -> str: ...


class _Adler32:
    def __init__(self) -> None:
        self._value = 1

    def update(self, data: bytes, /) -> None:
        self._value = zlib.adler32(data, self._value)

    def hexdigest(self) -> str:
        return f"{self._value:08x}"


def _hasher(algorithm: str) -> _Hasher:
    if algorithm == "adler32":
        return _Adler32()
    return hashlib.md5(usedforsecurity=False) if algorithm == "md5" else hashlib.sha256()
