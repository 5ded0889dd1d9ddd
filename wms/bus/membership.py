"""Which partitions are this instance's: shared out over the live instances by their order in Postgres."""

import time

from wms.db.instance import DEAD_AFTER_SECONDS
from wms.ids import InstanceId

MARGIN_SECONDS = 1.0
"""An instance gives its partitions up this much before the others take it for dead."""


class Membership:
    """Who shares the work with this instance; brought up to date by every heartbeat."""

    def __init__(self, instance_id: InstanceId) -> None:
        self.instance_id = instance_id
        self._sharers: dict[str, list[InstanceId]] = {}
        self._good_until = 0.0

    def update(self, sharers: dict[str, list[InstanceId]], sent_at: float | None = None) -> None:
        """Take what a heartbeat brought; `sent_at` is the monotonic time before it was sent.

        The others count from when the database took the heartbeat. The answer may have waited long for a busy event loop.
        """
        self._sharers = sharers
        began = time.monotonic() if sent_at is None else sent_at
        self._good_until = began + DEAD_AFTER_SECONDS - MARGIN_SECONDS

    def place(self, consumer: str) -> tuple[int, int]:
        """Return this instance's place, from 0, among how many that share a consumer's work; (0, 1) if it is none of them."""
        sharers = self._sharers.get(consumer, [])
        if self.instance_id not in sharers:
            return 0, 1
        return sharers.index(self.instance_id), len(sharers)

    def share(self, consumer: str, count: int) -> tuple[int, ...]:
        """Return which of `count` partitions are this instance's: none when its last heartbeat is too long ago."""
        return () if time.monotonic() > self._good_until else self.assigned(consumer, count)

    def assigned(self, consumer: str, count: int) -> tuple[int, ...]:
        """Return which of `count` partitions the last heartbeat gave this instance, however long ago that was."""
        sharers = self._sharers.get(consumer, [])
        if self.instance_id not in sharers:
            return ()
        place = sharers.index(self.instance_id)
        return tuple(range(place, count, len(sharers)))
