"""Finds the payloads that take too much on disk, in time: before one is a fifth over its limit, wherever it writes.

To count the files of a payload takes time, and within half a second a payload writes a gigabyte. But whatever it takes, the
file system has less. So one look at the free space of the file system says of all payloads that none can be over its limit
yet, and how long none can be, since nothing writes faster than memory is copied. Only of a payload that can be over it the files
are counted, each in a thread of its own: who has very many files is counted late, and nobody else. What others free meanwhile would hide what it takes. So its files are also counted from time to time, if
anything was written on the machine at all.

A payload that sleeps costs a look now and then: with a limit of 100 MB thirty a second, with one of 5 GB one.
"""

import os
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Protocol

FASTEST = 2.0e9 * min(os.cpu_count() or 1, 4)
"""The most bytes that are written in a second: a processor writes 2 GB/s to the cache of files."""
TOLERANCE = 0.05
"""The share of its limit by which a payload may seem to be over it before its files are counted."""
MARGIN = 0.1
"""The share of a limit that a payload can take from one look to the next, beyond what it may take."""
LOOK_SHORTEST, LOOK_LONGEST = 0.005, 1.0
REST_SHORTEST, REST_PER_COUNT = 0.5, 20.0
"""The seconds between two counts of the same payload that nothing urges, and at least so many times what one took."""
URGENT_REST_PER_COUNT = 4.0
REST_FIRST = 0.05
"""The seconds until the first count. What a payload wrote before the first look is only known then."""
DIRTIED = b"nr_dirtied "
"""The line of /proc/vmstat with the pages of files that were written to since the machine started."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


class DiskGauge:
    """What is known of one payload's bytes on disk: `used` at the last count, and what was free and written on the machine then.

    `limit` is the payload's, in bytes. Times are in seconds of the monotonic clock; it starts `now`.
    """

    def __init__(self, limit: int, now: float) -> None:
        self.used = 0
        self._limit = limit
        self._free: int | None = None
        self._dirtied: int | None = None
        self._counted_at = now - REST_SHORTEST + REST_FIRST
        self._count_seconds = 0.0
        self.is_counting = False
        """Whether the payload's files are being counted now."""

    def is_urgent(self, free: int, now: float) -> bool:
        """Return whether the payload may be over its limit, as so few bytes are `free` on the file system now."""
        if self._free is None:
            self._free = free  # it has just started
        rested = now - self._counted_at >= URGENT_REST_PER_COUNT * self._count_seconds
        return rested and self._left(free) + TOLERANCE * self._limit <= 0

    def is_due(self, dirtied: int, now: float) -> bool:
        """Return whether to count, though nothing urges: it was long ago, and as much was written that it matters."""
        rest = max(REST_SHORTEST, REST_PER_COUNT * self._count_seconds)
        matters = self._dirtied is None or dirtied - self._dirtied >= TOLERANCE * self._limit
        return matters and now - self._counted_at >= rest

    def safe_seconds(self, free: int) -> float:
        """Return for how long the payload cannot be over its limit by more than TOLERANCE and MARGIN together."""
        return (max(0.0, self._left(free)) + (TOLERANCE + MARGIN) * self._limit) / FASTEST

    def note(self, used: int, free: int, dirtied: int, since: float, now: float) -> None:
        """Note a count of the payload's files, which took from `since` until `now`. `free` and `dirtied` are of before it."""
        self.used, self._free, self._dirtied = used, free, dirtied
        self._counted_at, self._count_seconds = now, now - since

    def _left(self, free: int) -> float:
        """Return how many bytes the payload may take yet, if all was its own that is no longer free."""
        taken = 0 if self._free is None else max(0, self._free - free)
        return self._limit - self.used - taken


class Watchable(Protocol):
    """A payload that is watched. `count_disk` counts its files and tells what was found; it is called in a thread for that alone."""

    gauge: DiskGauge | None

    def count_disk(self) -> int:
        """Count the bytes on disk, pass them on, and return them."""


class DiskWatch:
    """Looks at the disk with the directory `place` as often as these payloads need it, in a thread of its own from `start` to `stop`.

    `failed` is called in that thread with the error if the disk cannot be looked at. The watch has ended then.
    """

    def __init__(
        self, place: Path, watched: Collection[Watchable], failed: Callable[[Exception], None]
    ) -> None:
        self._place = place
        self._failed = failed
        self._watched = watched
        self._dirtied = 0
        self._dirtied_at = 0.0
        self._next_at = 0.0
        self._changed = threading.Event()
        self._is_over = False

    def wake(self, gauge: DiskGauge) -> None:
        """Look now, if the next look would be too late for this payload, which has just started."""
        # A short job is over before: it costs no turn of the thread.
        if time.monotonic() + gauge.safe_seconds(0) < self._next_at:
            self._changed.set()

    def start(self) -> None:
        """Begin to watch."""
        # A disk that does not answer must not keep the agent from ending.
        threading.Thread(target=self._run, name="disks", daemon=True).start()

    def stop(self) -> None:
        """Watch no longer. A look that is going on is not waited for."""
        self._is_over = True
        self._changed.set()

    def _run(self) -> None:
        try:
            while not self._is_over:
                pause = self._look()
                self._next_at = time.monotonic() + pause
                self._changed.wait(pause)
                self._changed.clear()
        except Exception as error:  # noqa: BLE001 - told to the agent, which ends
            self._failed(error)

    def _look(self) -> float:
        """Count the files of those that need it. Return the seconds until the next look."""
        gauged = [(each, each.gauge) for each in list(self._watched) if each.gauge is not None]
        if not gauged:
            return LOOK_LONGEST
        free, now = self._free(), time.monotonic()
        written = self._written(now)
        for each, gauge in gauged:
            if not gauge.is_counting and (gauge.is_urgent(free, now) or gauge.is_due(written, now)):
                gauge.is_counting = True
                threading.Thread(
                    target=self._count, args=(each, gauge), name="disk count", daemon=True
                ).start()
        safe = [gauge.safe_seconds(free) for _, gauge in gauged if not gauge.is_counting]
        return min(max(min(safe, default=LOOK_LONGEST), LOOK_SHORTEST), LOOK_LONGEST)

    def _count(self, watched: Watchable, gauge: DiskGauge) -> None:
        try:
            since, before, written = time.monotonic(), self._free(), self._dirtied
            gauge.note(watched.count_disk(), before, written, since, time.monotonic())
        except Exception as error:  # noqa: BLE001 - told to the agent, which ends
            self._failed(error)
        gauge.is_counting = False
        self._changed.set()

    def _free(self) -> int:
        found = os.statvfs(self._place)
        return found.f_bfree * found.f_frsize

    def _written(self, now: float) -> int:
        """Return how many bytes were written to files on this machine so far, as it was at most REST_SHORTEST seconds ago."""
        if now - self._dirtied_at >= REST_SHORTEST:
            with open("/proc/vmstat", "rb") as file:  # noqa: PTH123 - often
                line = next((line for line in file if line.startswith(DIRTIED)), DIRTIED + b"0")
            self._dirtied, self._dirtied_at = int(line.split()[1]) * _PAGE, now
        return self._dirtied
