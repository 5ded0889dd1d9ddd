"""Envelopes of signed messages: their bounded reading, and the authentication codes in them.

A code is HMAC-SHA256 in base64, over parts that are separated by a NUL. Only the last part may hold a NUL.
"""

import hmac
from binascii import b2a_base64
from collections.abc import Sequence
from typing import Annotated, Final, Generic, TypeAlias, TypeVar

import msgspec

from wms.bounds import Word
from wms.errors import Rejected

SECRETS_LIMIT: Final = 2
"""At most so many secrets are in use at a time."""
ENVELOPE_BYTES: Final = 256
"""Signing makes a message at most so many bytes longer."""

Macs: TypeAlias = Annotated[tuple[Word, ...], msgspec.Meta(max_length=SECRETS_LIMIT)]
"""One code for each secret in use, the newest first."""

E = TypeVar("E", bound=msgspec.Struct)


class Envelopes(Generic[E]):
    """Reads envelopes of one type."""

    def __init__(self, envelope: type[E], code: str) -> None:
        """`code` is the code of the Rejected that a faulty envelope raises."""
        self._decoder = msgspec.json.Decoder(envelope)
        self._code = code

    def read(self, payload: bytes, limit: int) -> E:
        """Return the envelope of a message of at most `limit` bytes, not yet verified; raises Rejected."""
        if len(payload) > limit + ENVELOPE_BYTES:
            raise self.forged("it is too large")
        try:
            return self._decoder.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self.forged("it is not signed") from None

    def forged(self, why: str) -> Rejected:
        """Return the refusal of a message whose code is wrong."""
        return Rejected(self._code, why)


def begin(key: bytes, *parts: bytes) -> hmac.HMAC:
    """Return a code begun over the given parts.

    It is copied for each message, as to begin a code costs more than to hash an offer.
    """
    return hmac.new(key, b"".join(part + b"\0" for part in parts), "sha256")


def mac(begun: hmac.HMAC, content: bytes) -> bytes:
    """Return the code over the parts of `begun` and the content."""
    code = begun.copy()
    code.update(content)
    return b2a_base64(code.digest(), newline=False)


def is_among(good: bytes, macs: Sequence[str]) -> bool:
    """Tell whether a code is among those given. The time that it takes tells nothing of them."""
    # Each code is compared; a message with more codes than we have secrets is not ours.
    equal = [hmac.compare_digest(good, each.encode()) for each in macs[:SECRETS_LIMIT]]
    return any(equal)
