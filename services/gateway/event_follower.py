"""Those who follow the events of an owner: each is given the records that concern this owner, and wakes for no others."""

import asyncio
import contextlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterator

from services.gateway.event_cursor import EventCursor
from services.gateway.event_record import EventRecord
from services.gateway.own_events import owners

MOST = 1_000
"""The records that wait for a follower; whoever is farther behind reads from the kept ones again."""


class EventFollower:
    """What waits for one follower."""

    def __init__(self) -> None:
        self.has_missed = False
        """Whether records that concern it were not given to it."""
        self._given = deque[tuple[EventRecord, EventCursor]]()
        self._news = asyncio.Event()

    def give(self, record: EventRecord, at: EventCursor) -> None:
        """Add a record, with the place behind it."""
        if len(self._given) < MOST:
            self._given.append((record, at))
        else:
            self.has_missed = True
        self.wake()

    def miss(self) -> None:
        """Tell it that records are gone."""
        self.has_missed = True
        self.wake()

    def wake(self) -> None:
        """Wake it."""
        self._news.set()

    def take(self) -> Iterator[tuple[EventRecord, EventCursor]]:
        """Yield what waits, in its order, each with the place behind it."""
        self._news.clear()
        while self._given:
            yield self._given.popleft()

    async def wait(self, within: float) -> None:
        """Wait for records, at most `within` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._news.wait()


class EventFollowers:
    """All followers, by owner."""

    def __init__(self) -> None:
        self._of_owner = defaultdict[str, set[EventFollower]](set)

    @contextlib.contextmanager
    def following(self, owner: str) -> Iterator[EventFollower]:
        """Follow the owner's events, from the next record on."""
        follower = EventFollower()
        self._of_owner[owner].add(follower)
        try:
            yield follower
        finally:
            self._of_owner[owner].discard(follower)
            if not self._of_owner[owner]:
                del self._of_owner[owner]

    def give(self, record: EventRecord, place: Callable[[], EventCursor]) -> None:
        """Give a record to those whom it concerns; `place` returns the place behind it."""
        concerned = [self._of_owner[owner] for owner in owners(record.fact) if owner in self._of_owner]
        if concerned:
            at = place()
            for each in set().union(*concerned):
                each.give(record, at)

    def miss(self) -> None:
        """Tell all that records are gone."""
        for each in self._all():
            each.miss()

    def wake(self) -> None:
        """Wake all."""
        for each in self._all():
            each.wake()

    def _all(self) -> list[EventFollower]:
        return [each for followers in self._of_owner.values() for each in followers]
