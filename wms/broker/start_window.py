"""When a job may start: absolute times of its preferences, and times relative to its submission and to its earliest start."""

from datetime import datetime, timedelta

import msgspec

from wms.jobdesc.preferences import JobPreferences


class StartWindow(msgspec.Struct, frozen=True):
    """The times between which a job is to start; without a latest one it may start at any time after the earliest."""

    earliest: datetime
    latest: datetime | None = None

    def is_over(self, now: datetime) -> bool:
        """Return whether the job can start in time no more."""
        return self.latest is not None and now > self.latest

    def is_open(self, now: datetime) -> bool:
        """Return whether the job may start now."""
        return now >= self.earliest and not self.is_over(now)


def start_window(preferences: JobPreferences | None, submitted_at: datetime) -> StartWindow:
    """Return the start window of a job that was submitted at a time.

    An absolute time goes before a relative one. The latest start is relative to the earliest.
    """
    if preferences is None:
        return StartWindow(submitted_at)
    earliest = preferences.earliest_start or _later(submitted_at, preferences.earliest_start_after)
    earliest = earliest or submitted_at
    return StartWindow(earliest, preferences.latest_start or _later(earliest, preferences.latest_start_after))


def _later(moment: datetime, seconds: float | None) -> datetime | None:
    return None if seconds is None else moment + timedelta(seconds=seconds)
