"""Which partitions a service instance reads: live instances of a consumer divide them by their order in Postgres."""

import time

from wms.db.instance import DEAD_AFTER_SECONDS
from wms.ids import InstanceId

MARGIN_SECONDS = 1.0
"""How many seconds before others consider it dead an instance without heartbeats gives up its partitions."""


class Membership:
    """Which service instances are alive and share the work of this one, as its last heartbeat learned."""

    def __init__(self, instance_id: InstanceId) -> None:
        self.instance_id = instance_id
        self._sharers: dict[str, list[InstanceId]] = {}
        self._good_until = 0.0

    def update(self, sharers: dict[str, list[InstanceId]], sent_at: float | None = None) -> None:
        """Store what a heartbeat returned: the live instances of each consumer, by its name.

        `sent_at` is the monotonic time in seconds just before the heartbeat was sent; None: now. The partitions last from then on, as
        others count from there too.
        """
        self._sharers = sharers
        began = time.monotonic() if sent_at is None else sent_at
        self._good_until = began + DEAD_AFTER_SECONDS - MARGIN_SECONDS

    def place(self, consumer: str) -> tuple[int, int]:
        """Return this instance's position, from 0, among the instances of a consumer, and their number; (0, 1) if it is not among them."""
        sharers = self._sharers.get(consumer, [])
        if self.instance_id not in sharers:
            return 0, 1
        return sharers.index(self.instance_id), len(sharers)

    def share(self, consumer: str, count: int) -> tuple[int, ...]:
        """Return which of the partitions 0 to `count` - 1 this instance reads for a consumer.

        Empty once its last heartbeat is too old.
        """
        return () if time.monotonic() > self._good_until else self.assigned(consumer, count)

    def assigned(self, consumer: str, count: int) -> tuple[int, ...]:
        """Return which of the partitions 0 to `count` - 1 the last heartbeat gave this instance, however old it is."""
        sharers = self._sharers.get(consumer, [])
        if self.instance_id not in sharers:
            return ()
        place = sharers.index(self.instance_id)
        return tuple(range(place, count, len(sharers)))
