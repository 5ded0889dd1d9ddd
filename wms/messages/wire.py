"""Encodes and decodes messages as JSON. Their size is checked before they are parsed."""

import re
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from wms.bounds import NAME_RULE, RULE, TEXT_RULE, Client, MessageId
from wms.decoding import UNDECODABLE
from wms.errors import Rejected
from wms.messages.inspection import checks, cleaners

PAYLOAD_LIMIT: Final = 950_000
"""The largest size of a message in bytes. By default, Kafka accepts one megabyte with headers."""

_BACKSLASH, _DELETE = 0x5C, 0x7F

M = TypeVar("M")

_encoder = msgspec.json.Encoder()


def encode(message: msgspec.Struct) -> bytes:
    """Return the message as JSON bytes. Raise Rejected if they are more than PAYLOAD_LIMIT; the sender may then split it."""
    payload = _encoder.encode(message)
    if len(payload) > PAYLOAD_LIMIT:
        raise Rejected(
            "MESSAGE_TOO_LARGE",
            f"a {type(message).__name__} message of {len(payload):,} bytes is over the limit of {PAYLOAD_LIMIT:,}",
            "send it in parts",
        )
    return payload


def size(message: msgspec.Struct) -> int:
    """Return how many bytes the message takes as JSON, even if they are more than PAYLOAD_LIMIT."""
    return len(_encoder.encode(message))


_TYPE: Final = re.compile(rb'"type"\s*:\s*"([\w-]{1,64})"')


def type_of(payload: bytes) -> str:
    """Return the message type at the beginning of a payload, or `-`. The payload is not decoded, since it may contain any bytes."""
    if payload.startswith(b"wms.probe "):
        return "probe"
    found = _TYPE.search(payload[:4_096])
    return found[1].decode() if found else "-"


class Envelope(msgspec.Struct, frozen=True):
    """The id of a command or query, and the client that waits for the answer.

    With these fields a message can be answered even if its other fields are wrong.
    """

    command_id: MessageId | Literal[""] = ""
    query_id: MessageId | Literal[""] = ""
    client: Client = ""


_envelopes: Final = msgspec.json.Decoder(Envelope)


def envelope(payload: bytes) -> Envelope | None:
    """Return the id and client of a command or query whose other fields may be wrong.

    The id stands in both `command_id` and `query_id`. Return None if there is no valid id to answer to.
    """
    if len(payload) > PAYLOAD_LIMIT:
        return None
    try:
        read = _envelopes.decode(payload)
    except UNDECODABLE:
        return None
    name = read.command_id or read.query_id
    return Envelope(name, name, read.client) if name and (name + read.client).isprintable() else None


class Codec(Generic[M]):
    """A decoder for the messages of one topic. `union` is the union of their types; a tag in each message says which.

    With `rules` false, only types and ranges are checked. That is for messages of stored values, which may be older than a rule.
    """

    def __init__(self, union: Any, *, rules: bool = True) -> None:
        self._decoder: msgspec.json.Decoder[M] = msgspec.json.Decoder(union)
        self._rules = checks(union, RULE) if rules else {}
        self._name_rules = checks(union, NAME_RULE) if rules else {}
        self._text_rules = checks(union, TEXT_RULE) if rules else {}
        self._cleaners = cleaners(union) if rules else {}

    def decode(self, payload: bytes) -> M:
        """Return the decoded message. Raise Rejected if it is too large, no UTF-8 JSON, breaks a rule, or is not of the union."""
        if len(payload) > PAYLOAD_LIMIT:
            raise Rejected(
                "MESSAGE_TOO_LARGE", f"{len(payload):,} bytes are over the limit of {PAYLOAD_LIMIT:,}"
            )
        try:
            message = self._decoder.decode(payload)
        except UNDECODABLE as error:
            raise Rejected("MESSAGE_INVALID", str(error), "correct it and send it again") from None
        kind = type(message)
        if check := self._rules.get(kind):
            check(message)
        # JSON writes the first 32 characters with a backslash: most messages have no character that could be wrong.
        if _BACKSLASH in payload or _DELETE in payload or not payload.isascii():
            self._check_texts(message, kind, payload)
            if clean := self._cleaners.get(kind):
                clean(message)
        return message

    def _check_texts(self, message: M, kind: type, payload: bytes) -> None:
        if check := self._name_rules.get(kind):
            check(message)
        if b"\\u0000" in payload and (check := self._text_rules.get(kind)):
            check(message)
