"""Parses numbers and booleans as XML Schema writes them."""

import math
import re

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_LARGEST = 1e18


def whole(text: str) -> int:
    """Return the whole number that a text is. Raise ValueError if it is none or has more than 18 digits."""
    text = text.strip()
    if not _INTEGER.fullmatch(text):
        raise ValueError("is no whole number, or too large a one")
    return int(text)


def real(text: str) -> float:
    """Return the number that a text is. Raise ValueError if it is none, not finite, or greater than 1e18."""
    try:
        value = float(text.strip()[:400].replace("_", " "))
    except ValueError:
        raise ValueError("is no number") from None
    if not math.isfinite(value) or abs(value) > _LARGEST:
        raise ValueError("is no finite number, or too large a one")
    return value


def is_true(text: str | None) -> bool:
    """Return whether a text is `true` or `1`; False for any other text and for None."""
    return text is not None and text.strip() in ("true", "1")
