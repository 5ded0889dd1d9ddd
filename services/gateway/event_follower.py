"""Followers of job events: each has a queue of the records about one owner's jobs, and is woken for these alone."""

import asyncio
import contextlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterator

from services.gateway.event_cursor import EventCursor
from services.gateway.event_record import EventRecord
from services.gateway.own_events import owners

MOST = 1_000
"""The most records in a follower's queue. Further ones are not queued: the follower reads them from the feed's memory or the broker."""


class EventFollower:
    """The queue of records for one stream of events."""

    def __init__(self) -> None:
        self.has_missed = False
        """Whether records for this follower were not queued, because the queue was full or the broker had deleted them."""
        self._given = deque[tuple[EventRecord, EventCursor]]()
        self._news = asyncio.Event()

    def give(self, record: EventRecord, at: EventCursor) -> None:
        """Queue a record with `at`, the position after it. If the queue is full, only note that a record was missed."""
        if len(self._given) < MOST:
            self._given.append((record, at))
        else:
            self.has_missed = True
        self.wake()

    def miss(self) -> None:
        """Note that records were deleted at the broker before they were read, and wake the follower."""
        self.has_missed = True
        self.wake()

    def wake(self) -> None:
        """End the follower's current or next `wait`."""
        self._news.set()

    def take(self) -> Iterator[tuple[EventRecord, EventCursor]]:
        """Remove and yield the queued records, the oldest first, each with the position after it."""
        self._news.clear()
        while self._given:
            yield self._given.popleft()

    async def wait(self, within: float) -> None:
        """Wait until the follower is woken, at most `within` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._news.wait()


class EventFollowers:
    """The followers of all streams, by owner of the jobs."""

    def __init__(self) -> None:
        self._of_owner = defaultdict[str, set[EventFollower]](set)

    @contextlib.contextmanager
    def following(self, owner: str) -> Iterator[EventFollower]:
        """Register a follower of the owner's jobs for the `with` block. It gets the records that are read from now on."""
        follower = EventFollower()
        self._of_owner[owner].add(follower)
        try:
            yield follower
        finally:
            self._of_owner[owner].discard(follower)
            if not self._of_owner[owner]:
                del self._of_owner[owner]

    def give(self, record: EventRecord, place: Callable[[], EventCursor]) -> None:
        """Queue a record for the followers of every owner whom it concerns. `place` returns the position after the record."""
        concerned = [self._of_owner[owner] for owner in owners(record.fact) if owner in self._of_owner]
        if concerned:
            at = place()
            for each in set().union(*concerned):
                each.give(record, at)

    def miss(self) -> None:
        """Note for every follower that records were deleted at the broker before they were read."""
        for each in self._all():
            each.miss()

    def wake(self) -> None:
        """Wake every follower, so that its stream can check whether it must end."""
        for each in self._all():
            each.wake()

    def _all(self) -> list[EventFollower]:
        return [each for followers in self._of_owner.values() for each in followers]
