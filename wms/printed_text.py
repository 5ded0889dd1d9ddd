"""Texts of payloads, users and sites, made safe for whoever reads them: on a terminal, on a page, or in a log.

A hostile text could move the cursor, forge a line of another job, or show a name backwards. Whatever is stored of one line is
cleaned as it comes in, by `one_line`. What a program printed is cleaned as it is shown, by `printed`, unless raw text is wanted.
"""

import re
from typing import Final

from wms.errors import MESSAGE_LIMIT, shown

UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, but for tabs and line ends
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that change the direction of a text
    "\u2028\u2029\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"  # hidden line ends and notes; half characters
)
"""A character that a reader must never get as it is."""
_COLOURS: Final = re.compile(r"\x1b\[[0-9;:]*m")
_LINE_ENDS: Final = re.compile(r"\r\n?")


def one_line(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """Return a text as one line of at most `limit` printable characters. Line ends become spaces, others are escaped."""
    if text.isprintable() and len(text) <= limit:
        return text
    return shown(" ".join(text[: 2 * limit].split()), limit)


def printed(text: str) -> str:
    """Return what a program printed, safe to show: without colours, a carriage return as a line end, unsafe characters escaped."""
    return escaped(_LINE_ENDS.sub("\n", _COLOURS.sub("", text)))


def escaped(text: str) -> str:
    """Return a text with its unsafe characters escaped by backslashes. Tabs and line ends stay."""
    return UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
