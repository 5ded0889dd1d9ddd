"""What signed messages have in common: how the envelope is read within its bounds, and the codes in it.

A code is HMAC-SHA256, in base64, over parts that a NUL separates. None but the last part may hold a NUL.
"""

import hmac
from binascii import b2a_base64
from collections.abc import Sequence
from typing import Annotated, Final, Generic, TypeAlias, TypeVar

import msgspec

from wms.bounds import Word
from wms.errors import Rejected

SECRETS_LIMIT: Final = 2
"""Secrets in use at a time."""
ENVELOPE_BYTES: Final = 256
"""By how much signing makes a message longer, at most."""

Macs: TypeAlias = Annotated[tuple[Word, ...], msgspec.Meta(max_length=SECRETS_LIMIT)]
"""One code for each secret in use, the newest first."""

E = TypeVar("E", bound=msgspec.Struct)


class Envelopes(Generic[E]):
    """Reads envelopes of one type."""

    def __init__(self, envelope: type[E], code: str) -> None:
        """`code` is that of Rejected for what is no such envelope."""
        self._decoder = msgspec.json.Decoder(envelope)
        self._code = code

    def read(self, payload: bytes, limit: int) -> E:
        """Return the envelope, not verified yet, of a content of at most `limit` bytes; raises Rejected."""
        if len(payload) > limit + ENVELOPE_BYTES:
            raise self.forged("it is too large")
        try:
            return self._decoder.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self.forged("it is not signed") from None

    def forged(self, why: str) -> Rejected:
        """Return the refusal of a message that is not what it claims to be."""
        return Rejected(self._code, why)


def begin(key: bytes, *parts: bytes) -> hmac.HMAC:
    """Return a code that covers the parts with which many messages begin; to begin costs more than to hash an offer."""
    return hmac.new(key, b"".join(part + b"\0" for part in parts), "sha256")


def mac(begun: hmac.HMAC, content: bytes) -> bytes:
    """Return the code over what `begun` covers and the content."""
    code = begun.copy()
    code.update(content)
    return b2a_base64(code.digest(), newline=False)


def is_among(good: bytes, macs: Sequence[str]) -> bool:
    """Tell whether a code is among those given, in a time that tells nothing of them."""
    # Every one is compared; a message has few, or it is none of ours.
    equal = [hmac.compare_digest(good, each.encode()) for each in macs[:SECRETS_LIMIT]]
    return any(equal)
