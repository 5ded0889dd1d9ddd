"""Membership: live instances of a consumer divide the partitions among themselves by their order in Postgres."""

import time

from wms.db.instance import DEAD_AFTER_SECONDS
from wms.ids import InstanceId

MARGIN_SECONDS = 1.0
"""Seconds by which an instance gives up its partitions before the other instances consider it dead."""


class Membership:
    """The live instances that share this instance's work, as of its last heartbeat."""

    def __init__(self, instance_id: InstanceId) -> None:
        self.instance_id = instance_id
        self._sharers: dict[str, list[InstanceId]] = {}
        self._good_until = 0.0

    def update(self, sharers: dict[str, list[InstanceId]], sent_at: float | None = None) -> None:
        """Store the answer of a heartbeat. `sent_at` is the monotonic time in seconds before the heartbeat was sent.

        Other instances measure from the database's receipt of the heartbeat. A busy event loop may have delayed its answer.
        """
        self._sharers = sharers
        began = time.monotonic() if sent_at is None else sent_at
        self._good_until = began + DEAD_AFTER_SECONDS - MARGIN_SECONDS

    def place(self, consumer: str) -> tuple[int, int]:
        """Return this instance's position, from 0, among a consumer's instances, and their number. It is (0, 1) if not among them."""
        sharers = self._sharers.get(consumer, [])
        if self.instance_id not in sharers:
            return 0, 1
        return sharers.index(self.instance_id), len(sharers)

    def share(self, consumer: str, count: int) -> tuple[int, ...]:
        """Return this instance's partitions, of 0 to `count` - 1. There are none once its last heartbeat is too old."""
        return () if time.monotonic() > self._good_until else self.assigned(consumer, count)

    def assigned(self, consumer: str, count: int) -> tuple[int, ...]:
        """Return the partitions, of 0 to `count` - 1, that the last heartbeat assigned to this instance, however old it is."""
        sharers = self._sharers.get(consumer, [])
        if self.instance_id not in sharers:
            return ()
        place = sharers.index(self.instance_id)
        return tuple(range(place, count, len(sharers)))
