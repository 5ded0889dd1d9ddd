"""What a service and its parsing processes say to each other over pipes: frames of a length and a message."""

from struct import Struct as Layout

import msgspec

LENGTH = Layout(">I")
"""The number of bytes of the message that follows."""


class ParserTask(msgspec.Struct, frozen=True):
    """A document to parse."""

    function: str
    """The function that parses, as `module:name`. It takes the arguments and returns a list of bytes, or raises Rejected."""
    arguments: list[bytes]
    processor_seconds: float
    """The processor time after which the system kills the process."""


class Parsed(msgspec.Struct, frozen=True, tag=True):
    """What the function returned."""

    pieces: list[bytes]


class ParserRefusal(msgspec.Struct, frozen=True, tag=True):
    """The texts of the error Rejected that the function raised."""

    code: str
    message: str
    remedy: str
    details: tuple[str, ...]


def frame(message: msgspec.Struct) -> bytes:
    """Return the bytes of a message with its length before it."""
    raw = msgspec.msgpack.encode(message)
    return LENGTH.pack(len(raw)) + raw
