"""Arrays of texts for the database as one text: a driver looks at each element, splitting in the server is much cheaper."""

from collections.abc import Sequence

from wms.errors import Rejected

SEPARATOR = "\x1f"
"""Unit separator: no name has it."""


def joined(values: Sequence[str]) -> str:
    """Return the texts for a parameter that is split in the server at U+001F; none, and one empty one, are none there.

    Rejected if one holds the separator.
    """
    text = SEPARATOR.join(values)
    if text.count(SEPARATOR) != max(0, len(values) - 1):
        raise Rejected("NAME_INVALID", "a name holds the control character U+001F", "leave it out")
    return text
