"""Envelopes of signed messages: bounded decoding, and the message authentication codes (MACs) in them.

A code is HMAC-SHA256 in base64 over parts that are separated by a NUL byte. Only the last part may contain a NUL byte.
"""

import hmac
from binascii import b2a_base64
from collections.abc import Sequence
from typing import Annotated, Final, Generic, TypeAlias, TypeVar

import msgspec

from wms.bounds import Word
from wms.errors import Rejected

SECRETS_LIMIT: Final = 2
"""How many secrets of the services may be in use at a time."""
ENVELOPE_BYTES: Final = 256
"""How many bytes an envelope may add to a message's content."""

Macs: TypeAlias = Annotated[tuple[Word, ...], msgspec.Meta(max_length=SECRETS_LIMIT)]
"""The authentication codes of a message: one for each secret in use, the newest first."""

E = TypeVar("E", bound=msgspec.Struct)


class Envelopes(Generic[E]):
    """Decodes signed messages of one type of envelope. It does not verify them."""

    def __init__(self, envelope: type[E], code: str) -> None:
        """Take the struct of the envelope. Malformed messages raise Rejected with the error code `code`."""
        self._decoder = msgspec.json.Decoder(envelope)
        self._code = code

    def read(self, payload: bytes, limit: int) -> E:
        """Return the envelope of a message, not yet verified. Its content may have `limit` bytes.

        Raise Rejected if the message is too large, or is no such envelope.
        """
        if len(payload) > limit + ENVELOPE_BYTES:
            raise self.forged("it is too large")
        try:
            return self._decoder.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self.forged("it is not signed") from None

    def forged(self, why: str) -> Rejected:
        """Return, not raise, the Rejected for a message whose envelope or signature is invalid; `why` says what is wrong."""
        return Rejected(self._code, why)


def begin(key: bytes, *parts: bytes) -> hmac.HMAC:
    """Return an HMAC with `key` that has hashed the given parts, each followed by a NUL byte.

    It is copied for each message, because a new HMAC costs more than hashing a message.
    """
    return hmac.new(key, b"".join(part + b"\0" for part in parts), "sha256")


def mac(begun: hmac.HMAC, content: bytes) -> bytes:
    """Return the authentication code, in base64, over the parts that `begun` has hashed and over `content`. `begun` is not changed."""
    code = begun.copy()
    code.update(content)
    return b2a_base64(code.digest(), newline=False)


def is_among(good: bytes, macs: Sequence[str]) -> bool:
    """Return whether the code `good` is one of the codes in a message. The comparison takes constant time, so that it reveals nothing."""
    # Each code is compared; a message with more codes than we have secrets is not ours.
    equal = [hmac.compare_digest(good, each.encode()) for each in macs[:SECRETS_LIMIT]]
    return any(equal)
