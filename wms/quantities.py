"""Times and sizes as people write them: `1h30m`, `2G`."""

import re

MIB = 1024 * 1024
_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_BYTES = {"": 1, "b": 1} | {
    spelled: factor
    for letter, factor in (("k", 1024), ("m", MIB), ("g", 1024 * MIB), ("t", MIB * MIB))
    for spelled in (letter, f"{letter}b", f"{letter}i", f"{letter}ib")
}
LENGTH_LIMIT = 32
SECONDS_LIMIT = 10**10
BYTES_LIMIT = 2**60

_PARTS = re.compile(r"(?:(\d+(?:\.\d+)?)\s*([a-z]*)\s*)+")
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")
_CLOCK = re.compile(r"(?:(\d{1,3})-)?(\d{1,4}):([0-5]\d):([0-5]\d)")
_UNCLEAR = re.compile(r"(\d{1,4}):([0-5]\d)")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")

A_TIME = "a time such as 90, 30s, 10m, 1h30m, 2d, 01:30:00 or 1-12:00:00"
A_SIZE = "a size such as 512M, 2G or 1.5GiB"


def seconds(text: str) -> int:
    """Return the seconds of `90`, `10m`, `1h30m`, `2d`, `01:30:00` or `1-12:00:00` (days, hours, minutes and seconds).

    Raise ValueError for other texts. One is `30:00`, which may mean minutes or hours.
    """
    said = _said(text)
    if clock := _CLOCK.fullmatch(said):
        days, hours, minutes, rest = map(int, clock.groups(default="0"))
        return days * 86_400 + hours * 3_600 + minutes * 60 + rest
    if unclear := _UNCLEAR.fullmatch(said):
        first, second = unclear.groups()
        raise ValueError(
            f"may mean minutes or hours: write the time as 00:{first:0>2}:{second} or as {first}:{second}:00"
        )
    if not _PARTS.fullmatch(said):
        raise ValueError(f"must be {A_TIME}")
    parts = _PART.findall(said)
    if any(unit not in _SECONDS for _, unit in parts) or (len(parts) > 1 and "" in (u for _, u in parts)):
        raise ValueError(f"must be {A_TIME}")
    total = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if total > SECONDS_LIMIT:
        raise ValueError(f"is too long a time; it must be {A_TIME}")
    if total != round(total):
        raise ValueError(f"must be whole seconds: {A_TIME}")
    return round(total)


def size_in_bytes(text: str) -> int:
    """Return the bytes of `512M`, `2G`, `2Gi`, `1.5GiB` or `100`, in powers of 1024. Raise ValueError for other texts."""
    found = _SIZE.fullmatch(_said(text))
    if found is None or found[2] not in _BYTES:
        raise ValueError(f"must be {A_SIZE}")
    if not found[2] and "." in found[1]:
        raise ValueError(f"needs a unit, since it is not a whole number: {A_SIZE}")
    size = float(found[1]) * _BYTES[found[2]]
    if size > BYTES_LIMIT:
        raise ValueError(f"is too large; it must be {A_SIZE}")
    return round(size)


def mebibytes(text: str) -> int:
    """Return a size in MiB, rounded up. A number without a unit is in MiB. Raise ValueError for a text that is no size."""
    if text.strip().isdecimal() and len(text) <= LENGTH_LIMIT:
        text = f"{text.strip()}M"
    return -(-size_in_bytes(text) // MIB)


def _said(text: str) -> str:
    said = text.strip().lower()
    if len(said) > LENGTH_LIMIT or not said.isascii():
        raise ValueError("is no time or size")
    return said
