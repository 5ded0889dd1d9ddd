"""The time window in which a job may start, from the absolute and relative times among its preferences."""

from datetime import datetime, timedelta

import msgspec

from wms.jobdesc.preferences import JobPreferences


class StartWindow(msgspec.Struct, frozen=True):
    """The window in which a job must start. Without `latest` it may start at any time after `earliest`."""

    earliest: datetime
    latest: datetime | None = None

    def is_over(self, now: datetime) -> bool:
        """Return whether `now` is after the latest start, so that the job must not start any more."""
        return self.latest is not None and now > self.latest

    def is_open(self, now: datetime) -> bool:
        """Return whether the job may start at `now`: not before `earliest`, and not after `latest`."""
        return now >= self.earliest and not self.is_over(now)


def start_window(preferences: JobPreferences | None, submitted_at: datetime) -> StartWindow:
    """Return the start window of a job with these preferences that was submitted at `submitted_at`.

    An absolute time takes precedence over a relative one. A relative latest start counts from the earliest start. Without
    preferences the job may start at any time after its submission.
    """
    if preferences is None:
        return StartWindow(submitted_at)
    earliest = preferences.earliest_start or _later(submitted_at, preferences.earliest_start_after)
    earliest = earliest or submitted_at
    return StartWindow(earliest, preferences.latest_start or _later(earliest, preferences.latest_start_after))


def _later(moment: datetime, seconds: float | None) -> datetime | None:
    return None if seconds is None else moment + timedelta(seconds=seconds)
