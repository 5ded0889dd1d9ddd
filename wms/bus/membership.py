"""Which partitions a service instance reads: live instances of a consumer divide them by their order in Postgres."""

import time

from wms.db.instance import DEAD_AFTER_SECONDS
from wms.ids import InstanceId

MARGIN_SECONDS = 1.0
"""An instance without successful heartbeats gives up its partitions this many seconds before others consider it dead."""


class Membership:
    """Which instances of a service are alive and share its partitions, by the last heartbeat of this instance."""

    def __init__(self, instance_id: InstanceId) -> None:
        self.instance_id = instance_id
        self._sharers: dict[str, list[InstanceId]] = {}
        self._good_since = self._good_until = 0.0

    def update(self, sharers: dict[str, list[InstanceId]], sent_at: float | None = None) -> None:
        """Store what a heartbeat returned: the live instances of each consumer, by the consumer's name.

        `sent_at` is the monotonic time in seconds just before the heartbeat was sent; None for now. The validity of the partitions counts from it, as
        it does for the other instances.
        """
        self._sharers = sharers
        began = time.monotonic() if sent_at is None else sent_at
        if began > self._good_until:
            self._good_since = began
        self._good_until = began + DEAD_AFTER_SECONDS - MARGIN_SECONDS

    def good_seconds(self) -> float:
        """Return for how many seconds this instance's heartbeats have come without a gap; 0 if the last one is too old.

        Heartbeats need both Kafka and the database. While they fail, nothing that takes long is anybody's fault.
        """
        now = time.monotonic()
        return 0.0 if now > self._good_until else now - self._good_since

    def place(self, consumer: str) -> tuple[int, int]:
        """Return this instance's position, from 0, among the instances of a consumer, and their number; (0, 1) if it is not among them."""
        sharers = self._sharers.get(consumer, [])
        if self.instance_id not in sharers:
            return 0, 1
        return sharers.index(self.instance_id), len(sharers)

    def share(self, consumer: str, count: int) -> tuple[int, ...]:
        """Return which of the partitions 0 to `count` - 1 this instance reads for a consumer.

        Return none if this instance's last heartbeat is too old.
        """
        return () if time.monotonic() > self._good_until else self.assigned(consumer, count)

    def assigned(self, consumer: str, count: int) -> tuple[int, ...]:
        """Return which of the partitions 0 to `count` - 1 the last heartbeat gave to this instance, however old that heartbeat is."""
        sharers = self._sharers.get(consumer, [])
        if self.instance_id not in sharers:
            return ()
        place = sharers.index(self.instance_id)
        return tuple(range(place, count, len(sharers)))
