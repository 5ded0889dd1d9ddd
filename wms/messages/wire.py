"""Bytes to messages and back: JSON by msgspec, bounded before it is parsed."""

from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from wms.bounds import NAME_RULE, RULE, TEXT_RULE, Client, MessageId
from wms.errors import Rejected
from wms.messages.inspection import checks

PAYLOAD_LIMIT: Final = 950_000
"""Bytes of one message: under the megabyte that Kafka brokers take by default, headers and framing included."""

_BACKSLASH, _DELETE = 0x5C, 0x7F

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


def size(message: msgspec.Struct) -> int:
    """Return how many bytes the message takes, be it too large or not."""
    return len(_encoder.encode(message))


class Envelope(msgspec.Struct, frozen=True):
    """What can be read of a command or query that is otherwise wrong: by which id its sender waits for an answer, and where."""

    command_id: MessageId | Literal[""] = ""
    query_id: MessageId | Literal[""] = ""
    client: Client = ""


_envelopes: Final = msgspec.json.Decoder(Envelope)


def envelope(payload: bytes) -> Envelope | None:
    """Return the envelope of a message, its id under both names; None if it has none that an answer could name."""
    if len(payload) > PAYLOAD_LIMIT:
        return None
    try:
        read = _envelopes.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    name = read.command_id or read.query_id
    return Envelope(name, name, read.client) if name and (name + read.client).isprintable() else None


class Codec(Generic[M]):
    """Decodes one topic's messages. Not `Struct` by `Struct`: the union's tag says which it is.

    `rules` False: the messages tell what was stored, perhaps before a rule came; types and ranges are checked still.
    """

    def __init__(self, union: Any, *, rules: bool = True) -> None:
        self._decoder: msgspec.json.Decoder[M] = msgspec.json.Decoder(union)
        self._rules = checks(union, RULE) if rules else {}
        self._name_rules = checks(union, NAME_RULE) if rules else {}
        self._text_rules = checks(union, TEXT_RULE) if rules else {}

    def decode(self, payload: bytes) -> M:
        """Return the message, or raise Rejected: too large, not JSON, not UTF-8, not of this topic."""
        if len(payload) > PAYLOAD_LIMIT:
            raise Rejected(
                "MESSAGE_TOO_LARGE", f"{len(payload):,} bytes are over the limit of {PAYLOAD_LIMIT:,}"
            )
        try:
            message = self._decoder.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Rejected("MESSAGE_INVALID", str(error), "correct it and send it again") from None
        kind = type(message)
        if check := self._rules.get(kind):
            check(message)
        # JSON writes the first 32 characters with a backslash: most messages have no character that could be wrong.
        if _BACKSLASH in payload or _DELETE in payload or not payload.isascii():
            self._check_texts(message, kind, payload)
        return message

    def _check_texts(self, message: M, kind: type, payload: bytes) -> None:
        if check := self._name_rules.get(kind):
            check(message)
        if b"\\u0000" in payload and (check := self._text_rules.get(kind)):
            check(message)
