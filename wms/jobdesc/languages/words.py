"""Words that several languages share: durations with units, sizes with units, ClassAd texts, command lines."""

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
    """Return the seconds of a text such as `90`, `2 hours` or `1 day, 6 hours`; `unit` is that of a bare number.

    None if the text is no duration.
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
    """Return the MiB of a text such as `2000`, `2 GB` or `512K`, rounded up; `unit` is that of a bare number.

    `unit` is k, m, g, t, or empty for bytes. None if the text is no size.
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    power = _POWERS.get((found[2] or unit).lower(), 0)
    return max(1, -int(-float(found[1]) * 1024**power // 1024**2))


def quoted(text: str) -> str:
    """Return a text as a literal of ClassAds."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def either(terms: Iterable[str]) -> str:
    """Return the expression that is true if any of the terms is."""
    return " || ".join(terms)


def software(name: str) -> str:
    """Return the expression that is true of elements which have installed this software."""
    return f"member({quoted(name)}, other.GlueHostApplicationSoftwareRunTimeEnvironment)"


def equal(attribute: str, value: str, *, negated: bool = False) -> str:
    """Return the expression that compares an attribute of an element with a text."""
    return f"other.{attribute} {'!=' if negated else '=='} {quoted(value)}"


def whole_number(text: str) -> int | None:
    """Return the number that a text is; None if it is none."""
    return int(text) if re.fullmatch(r"\s*[+-]?[0-9]{1,15}\s*", text) else None


def real(text: str) -> float | None:
    """Return the finite number that a text is; None if it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value - value == 0 else None


def truth(text: str) -> bool | None:
    """Return the truth that a text is: yes, no, true, false, 1 or 0; None if it is none."""
    return {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}.get(
        text.strip().lower()
    )
