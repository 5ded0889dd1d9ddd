"""Bytes to messages and back: JSON by msgspec, bounded before it is parsed."""

from typing import Any, Final, Generic, TypeVar

import msgspec

from wms.errors import Rejected

PAYLOAD_LIMIT: Final = 950_000
"""Bytes of one message: under the megabyte that Kafka brokers take by default, headers and framing included."""

M = TypeVar("M")

_encoder = msgspec.json.Encoder()


def encode(message: msgspec.Struct) -> bytes:
    """Return the message as JSON; too large a one is Rejected here, where its sender can still mend it."""
    payload = _encoder.encode(message)
    if len(payload) > PAYLOAD_LIMIT:
        raise Rejected(
            "MESSAGE_TOO_LARGE",
            f"a {type(message).__name__} message of {len(payload):,} bytes is over the limit of {PAYLOAD_LIMIT:,}",
            "send it in parts",
        )
    return payload


class Codec(Generic[M]):
    """Decodes one topic's messages. Not `Struct` by `Struct`: the union's tag says which it is."""

    def __init__(self, union: Any) -> None:
        self._decoder: msgspec.json.Decoder[M] = msgspec.json.Decoder(union)

    def decode(self, payload: bytes) -> M:
        """Return the message, or raise Rejected: too large, not JSON, not UTF-8, not of this topic."""
        if len(payload) > PAYLOAD_LIMIT:
            raise Rejected(
                "MESSAGE_TOO_LARGE", f"{len(payload):,} bytes are over the limit of {PAYLOAD_LIMIT:,}"
            )
        try:
            return self._decoder.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Rejected("MESSAGE_INVALID", str(error)) from None
