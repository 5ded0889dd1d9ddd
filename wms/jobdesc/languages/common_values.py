"""Values that several languages have in common: durations and sizes with units, ClassAd expressions, numbers and booleans."""

import re
from collections.abc import Iterable
from typing import Final

_SECONDS: Final = {
    "s": 1, "sec": 1, "second": 1, "seconds": 1, "m": 60, "min": 60, "minute": 60, "minutes": 60, "h": 3_600, "hour": 3_600,
    "hours": 3_600, "d": 86_400, "day": 86_400, "days": 86_400, "w": 604_800, "week": 604_800, "weeks": 604_800,
}  # fmt: skip
_DURATION = re.compile(r"\s*([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([A-Za-z]*)\s*,?")
_SIZE = re.compile(r"\s*([0-9]{1,18}(?:\.[0-9]{1,6})?)\s*([kmgt]?)i?b?\s*", re.IGNORECASE)
_POWERS: Final = {"k": 1, "m": 2, "g": 3, "t": 4}


def seconds(text: str, unit: str = "seconds") -> int | None:
    """Return the seconds of a duration such as `90`, `2 hours` or `1 day, 6 hours`; None if the text is no duration.

    `unit` is the unit of a number without one, as a word such as `seconds` or `minutes`.
    """
    total, at = 0.0, 0
    while at < len(text):
        found = _DURATION.match(text, at)
        factor = _SECONDS.get((found[2] or unit).lower()) if found else None
        if found is None or factor is None:
            return None
        total += float(found[1]) * factor
        at = found.end()
    return round(total) if at else None


def mebibytes(text: str, unit: str = "m") -> int | None:
    """Return the MiB of a size such as `2000`, `2 GB` or `512K`, rounded up; None if the text is no size.

    `unit` is the unit of a number without one: k, m, g, t, or empty for bytes.
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    power = _POWERS.get((found[2] or unit).lower(), 0)
    return max(1, -int(-float(found[1]) * 1024**power // 1024**2))


def quoted(text: str) -> str:
    """Return a text as a ClassAd string literal: in double quotes, with backslashes where needed."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def either(terms: Iterable[str]) -> str:
    """Return the ClassAd expression that is true if any of the expressions `terms` is."""
    return " || ".join(terms)


def software(name: str) -> str:
    """Return the ClassAd expression that is true of computing elements whose ads list this installed software."""
    return f"member({quoted(name)}, other.GlueHostApplicationSoftwareRunTimeEnvironment)"


def equal(attribute: str, value: str, *, negated: bool = False) -> str:
    """Return the ClassAd expression that is true if an attribute of a computing element equals a text.

    If `negated` is True, the expression is true if they differ.
    """
    return f"other.{attribute} {'!=' if negated else '=='} {quoted(value)}"


def whole_number(text: str) -> int | None:
    """Return the whole number that a text of at most 15 digits is; None if it is none."""
    return int(text) if re.fullmatch(r"\s*[+-]?[0-9]{1,15}\s*", text) else None


def real(text: str) -> float | None:
    """Return the finite number that a text is; None if it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value - value == 0 else None


def truth(text: str) -> bool | None:
    """Return the boolean of a text: yes, no, true, false, 1 or 0, in upper or lower case; None for any other text."""
    return {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}.get(
        text.strip().lower()
    )
