"""The wall clock. Only this module reads it; elsewhere time is an argument."""

import time
from datetime import UTC, datetime


def now() -> datetime:
    """Return this machine's time in UTC, with its time zone."""
    return datetime.now(UTC)  # noqa: TID251 - this is the place


def timestamp() -> float:
    """Return this machine's time in seconds since 1970."""
    return time.time()  # noqa: TID251 - this is the place
