"""What a payload printed, as text in which each byte that cannot be shown is one character. So positions in bytes stay known.

Each byte that is no UTF-8 becomes U+FFFD, as a zero byte does where it is stored. A U+FFFD that was printed stands for its three bytes.
"""

import codecs
from typing import Final

UNREADABLE: Final = "\ufffd"
_HANDLER: Final = "wms.each-byte"


def _each_byte(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return UNREADABLE * (error.end - error.start), error.end


codecs.register_error(_HANDLER, _each_byte)


def decoded(raw: bytes, *, is_end: bool) -> tuple[str, int]:
    """Return bytes as text, and how many bytes it has. Unless nothing follows (`is_end`), a character that is cut at the end is left out."""
    plain = raw.replace(UNREADABLE.encode(), b"\xff\xff\xff")
    return codecs.utf_8_decode(plain, _HANDLER, is_end)


def encoded(text: str) -> bytes:
    """Return bytes that `decoded` makes this text of."""
    return text.encode().replace(UNREADABLE.encode(), b"\xff")


def is_within_character(byte: int) -> bool:
    """Return whether a byte of UTF-8 goes on with a character."""
    return byte & 0xC0 == 0x80
