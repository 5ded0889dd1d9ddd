"""The wall clock. Only this module reads it; elsewhere time is an argument."""

import time
from datetime import UTC, datetime


def now() -> datetime:
    """Return this machine's present time as a timezone-aware datetime in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - this is the place


def timestamp() -> float:
    """Return this machine's present time in seconds since 1970, UTC."""
    return time.time()  # noqa: TID251 - this is the place
