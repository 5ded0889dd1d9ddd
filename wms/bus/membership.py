"""Membership: live instances divide the partitions among themselves by their order in Postgres."""

import time

from wms.db.instance import DEAD_AFTER_SECONDS
from wms.ids import InstanceId

MARGIN_SECONDS = 1.0
"""An instance gives up its partitions this long before the others consider it dead."""


class Membership:
    """The instances that share the work with this one; each heartbeat updates it."""

    def __init__(self, instance_id: InstanceId) -> None:
        self.instance_id = instance_id
        self._sharers: dict[str, list[InstanceId]] = {}
        self._good_until = 0.0

    def update(self, sharers: dict[str, list[InstanceId]], sent_at: float | None = None) -> None:
        """Take the answer of a heartbeat; `sent_at` is the monotonic time before it was sent.

        The others count from the time when the database took the heartbeat. A busy event loop may have delayed its
        answer.
        """
        self._sharers = sharers
        began = time.monotonic() if sent_at is None else sent_at
        self._good_until = began + DEAD_AFTER_SECONDS - MARGIN_SECONDS

    def place(self, consumer: str) -> tuple[int, int]:
        """Return the place of this instance, from 0, and the number of instances of a consumer; (0, 1) if it is not one."""
        sharers = self._sharers.get(consumer, [])
        if self.instance_id not in sharers:
            return 0, 1
        return sharers.index(self.instance_id), len(sharers)

    def share(self, consumer: str, count: int) -> tuple[int, ...]:
        """Return the partitions, of `count`, that are this instance's: none when its last heartbeat is too old."""
        return () if time.monotonic() > self._good_until else self.assigned(consumer, count)

    def assigned(self, consumer: str, count: int) -> tuple[int, ...]:
        """Return the partitions, of `count`, that the last heartbeat gave this instance, however old it is."""
        sharers = self._sharers.get(consumer, [])
        if self.instance_id not in sharers:
            return ()
        place = sharers.index(self.instance_id)
        return tuple(range(place, count, len(sharers)))
