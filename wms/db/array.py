"""Lists of texts that are sent to Postgres as one joined text. The server splits it much faster than the driver encodes single elements."""

from collections.abc import Sequence

from wms.errors import Rejected

SEPARATOR = "\x1f"
"""The unit separator, a control character that no name contains."""


def joined(values: Sequence[str]) -> str:
    """Join texts with U+001F into one statement parameter, which the server splits again. A single empty text arrives as an empty array.

    Raise Rejected if a text contains U+001F.
    """
    text = SEPARATOR.join(values)
    if text.count(SEPARATOR) != max(0, len(values) - 1):
        raise Rejected("NAME_INVALID", "a name holds the control character U+001F", "leave it out")
    return text


def multirange(ranges: Sequence[tuple[int, int]]) -> str:
    """Return ranges of ids, both ends included, as the text of a Postgres multirange."""
    return f"{{{','.join(f'[{low},{high}]' for low, high in ranges)}}}"
