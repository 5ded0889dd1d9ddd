"""Encoding and decoding of messages: JSON by msgspec, limited in size before it is parsed."""

from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from wms.bounds import NAME_RULE, RULE, TEXT_RULE, Client, MessageId
from wms.errors import Rejected
from wms.messages.inspection import checks

PAYLOAD_LIMIT: Final = 950_000
"""The most bytes of one message: below the megabyte that Kafka brokers accept by default, headers and framing included."""

_BACKSLASH, _DELETE = 0x5C, 0x7F

M = TypeVar("M")

_encoder = msgspec.json.Encoder()


def encode(message: msgspec.Struct) -> bytes:
    """Return the message as JSON. Raises Rejected if it is too large, so that its sender can still split it."""
    payload = _encoder.encode(message)
    if len(payload) > PAYLOAD_LIMIT:
        raise Rejected(
            "MESSAGE_TOO_LARGE",
            f"a {type(message).__name__} message of {len(payload):,} bytes is over the limit of {PAYLOAD_LIMIT:,}",
            "send it in parts",
        )
    return payload


def size(message: msgspec.Struct) -> int:
    """Return the bytes that the message takes as JSON, even above the limit."""
    return len(_encoder.encode(message))


class Envelope(msgspec.Struct, frozen=True):
    """The readable fields of an otherwise faulty command or query: its id, and the client that waits for the answer."""

    command_id: MessageId | Literal[""] = ""
    query_id: MessageId | Literal[""] = ""
    client: Client = ""


_envelopes: Final = msgspec.json.Decoder(Envelope)


def envelope(payload: bytes) -> Envelope | None:
    """Return the envelope of a message, its id under both names; None if it has no valid id to answer to."""
    if len(payload) > PAYLOAD_LIMIT:
        return None
    try:
        read = _envelopes.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    name = read.command_id or read.query_id
    return Envelope(name, name, read.client) if name and (name + read.client).isprintable() else None


class Codec(Generic[M]):
    """A decoder of one topic's messages, a union in which the tag gives the type.

    With `rules` False, only types and ranges are checked: the messages report stored values, perhaps older than a rule.
    """

    def __init__(self, union: Any, *, rules: bool = True) -> None:
        self._decoder: msgspec.json.Decoder[M] = msgspec.json.Decoder(union)
        self._rules = checks(union, RULE) if rules else {}
        self._name_rules = checks(union, NAME_RULE) if rules else {}
        self._text_rules = checks(union, TEXT_RULE) if rules else {}

    def decode(self, payload: bytes) -> M:
        """Return the decoded message. Raises Rejected if it is too large, not JSON, not UTF-8, breaks a rule, or is not of this topic."""
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
