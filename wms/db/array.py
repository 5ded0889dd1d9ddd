"""Arrays of texts, sent to the database as one text: splitting it in the server is much cheaper than encoding each element."""

from collections.abc import Sequence

from wms.errors import Rejected

SEPARATOR = "\x1f"
"""The unit separator, which no name has."""


def joined(values: Sequence[str]) -> str:
    """Return the texts for a parameter that the server splits at U+001F. One empty text arrives as none.

    Raises Rejected if a text has the separator.
    """
    text = SEPARATOR.join(values)
    if text.count(SEPARATOR) != max(0, len(values) - 1):
        raise Rejected("NAME_INVALID", "a name holds the control character U+001F", "leave it out")
    return text
