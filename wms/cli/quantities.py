"""Times and sizes for users: moments as they write them, and text for them to read."""

from datetime import UTC, datetime, timedelta

from wms.quantities import LENGTH_LIMIT, seconds

A_MOMENT = "how long ago, such as 2h or 7d, or a time such as 2026-11-22 or 2026-11-22T08:00Z"


def moment(text: str, now: datetime) -> datetime:
    """Return the time of `2h` (before `now`), `2026-11-22` or `2026-11-22T08:00`. Raise ValueError for other texts.

    The result has a time zone: that of this machine if the text has none.
    """
    try:
        # Messages write a time in words, with its zone: 2026-11-22 08:00:05 UTC.
        said = text.strip().replace(" UTC", "Z")
        found = datetime.fromisoformat(said) if len(text) <= LENGTH_LIMIT else None
    except ValueError:
        found = None
    if found is not None:
        return found if found.tzinfo else found.astimezone()
    try:
        return now - timedelta(seconds=seconds(text))
    except (ValueError, OverflowError):
        raise ValueError(f"must be {A_MOMENT}") from None


def stamp(at: datetime, *, exactly: bool = False) -> str:
    """Return a time as text that `moment` reads: `2026-11-22T08:00:05Z`, in UTC, with milliseconds if `exactly` is True."""
    text = at.astimezone(UTC).isoformat(timespec="milliseconds" if exactly else "seconds")
    return text.replace("+00:00", "Z")


def span(duration: float) -> str:
    """Return a duration in seconds as text of at most six characters: `8s`, `3m20s`, `5h03m`, `2d04h`."""
    whole = max(0, round(duration))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours:02}h"
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


def since(then: datetime | None, now: datetime) -> str:
    """Return the time from `then` to `now` as text such as `3m20s`; a dash if `then` is None."""
    return "-" if then is None else span((now - then).total_seconds())


def amount(size: float | None) -> str:
    """Return a size in bytes as text: `512 B`, `1.5 MiB`; a dash for None."""
    if size is None:
        return "-"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
