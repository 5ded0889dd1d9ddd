"""Envelopes of signed messages: decoding them with a size limit, and their message authentication codes (MACs).

A code is HMAC-SHA256 in base64 over several byte strings, such as topic and content. A NUL byte separates one from the next.
Only the last one may contain a NUL byte.
"""

import hmac
from binascii import b2a_base64
from collections.abc import Sequence
from typing import Annotated, Final, Generic, TypeAlias, TypeVar

import msgspec

from wms.bounds import Word
from wms.decoding import UNDECODABLE
from wms.errors import Rejected

SECRETS_LIMIT: Final = 2
"""The most secrets that the services may have in use at a time, and so the most codes in a message. More are refused."""
ENVELOPE_BYTES: Final = 256
"""The most bytes that an envelope may add to a message's content. A larger message is refused before it is decoded."""

Macs: TypeAlias = Annotated[tuple[Word, ...], msgspec.Meta(max_length=SECRETS_LIMIT)]
"""The authentication codes of a message: one for each of the services' secrets in use, the newest first."""

E = TypeVar("E", bound=msgspec.Struct)


class Envelopes(Generic[E]):
    """Decodes signed messages of one type of envelope: the struct with content and codes. It does not verify the codes."""

    def __init__(self, envelope: type[E], code: str) -> None:
        """Decode messages into the struct `envelope`. `code` is the error code of the Rejected that malformed messages raise."""
        self._decoder = msgspec.json.Decoder(envelope)
        self._code = code

    def read(self, payload: bytes, limit: int) -> E:
        """Return the envelope of a message, not yet verified. The content in it may have at most `limit` bytes.

        Raise Rejected if the message is more than ENVELOPE_BYTES larger than that, or cannot be decoded as such an envelope.
        """
        if len(payload) > limit + ENVELOPE_BYTES:
            raise self.forged("it is too large")
        try:
            return self._decoder.decode(payload)
        except UNDECODABLE:
            raise self.forged("it is not signed") from None

    def forged(self, why: str) -> Rejected:
        """Return, not raise, the Rejected for a message whose envelope or signature is invalid; `why` says what is wrong."""
        return Rejected(self._code, why)


def begin(key: bytes, *parts: bytes) -> hmac.HMAC:
    """Return an HMAC-SHA256 object with `key` that has hashed the given parts, each followed by a NUL byte.

    `mac` copies the object for each message, because a new HMAC costs more than hashing a message.
    """
    return hmac.new(key, b"".join(part + b"\0" for part in parts), "sha256")


def mac(begun: hmac.HMAC, content: bytes) -> bytes:
    """Return the authentication code, in base64, over the parts that `begun` has hashed and over `content`.

    `begun` is the result of `begin`; it is not changed.
    """
    code = begun.copy()
    code.update(content)
    return b2a_base64(code.digest(), newline=False)


def is_among(good: bytes, macs: Sequence[str]) -> bool:
    """Return whether the right code `good` is among the first SECRETS_LIMIT of `macs`, the codes in a message.

    Each comparison takes constant time, so that the duration reveals nothing of the right code.
    """
    # Each code is compared; a message with more codes than we have secrets is not ours.
    equal = [hmac.compare_digest(good, each.encode()) for each in macs[:SECRETS_LIMIT]]
    return any(equal)
