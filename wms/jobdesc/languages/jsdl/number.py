"""Numbers and truth values as XML Schema writes them."""

import math
import re

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_LARGEST = 1e18


def whole(text: str) -> int:
    """Return a whole number of at most 18 digits. Raises ValueError."""
    text = text.strip()
    if not _INTEGER.fullmatch(text):
        raise ValueError("is no whole number, or too large a one")
    return int(text)


def real(text: str) -> float:
    """Return a finite number. Raises ValueError."""
    try:
        value = float(text.strip()[:400].replace("_", " "))
    except ValueError:
        raise ValueError("is no number") from None
    if not math.isfinite(value) or abs(value) > _LARGEST:
        raise ValueError("is no finite number, or too large a one")
    return value


def is_true(text: str | None) -> bool:
    """Return a truth value; False if there is none."""
    return text is not None and text.strip() in ("true", "1")
