"""Records slow work in the database: which messages an instance is handling. After a crash, the next process finds which may have caused it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import structlog

from wms.db import in_hand, parked
from wms.db.database import GONE, RETRIED, Database
from wms.db.in_hand import Span
from wms.db.offset import ConsumedTopic
from wms.ids import InstanceId

log = structlog.get_logger()

Work: TypeAlias = Callable[[], Awaitable[None]]

NOTED_AFTER_SECONDS = 1.0
"""After how many seconds of work on a batch its note is written. Few batches take so long, so notes cost almost nothing."""


class SlowMessageNotes:
    """Writes to the database which messages one consumer of this instance is handling, if that takes long."""

    def __init__(self, db: Database, feed: ConsumedTopic, instance_id: InstanceId) -> None:
        self._db = db
        self._feed = feed
        self.instance_id = instance_id

    def batch(self, spans: Mapping[int, Span], deaths: int = 0) -> "Note":
        """Return a context in which to handle a batch. After `NOTED_AFTER_SECONDS` a note on its messages is written.

        `spans` gives the first and the last offset of the batch in each partition. If any of the `deaths` of other processes may have been
        due to the batch, the note is written at the start.
        """
        return Note(
            partial(self._note_batch, spans, deaths),
            partial(self._forget_batch, list(spans)),
            at_once=deaths > 0,
        )

    def parked(self, parked_ids: Sequence[int], deaths: int = 0) -> "Note":
        """Return a context in which to handle parked messages, as `batch` does for others."""
        return Note(
            partial(self._take, parked_ids, self.instance_id, deaths),
            partial(self._take, parked_ids, None),
            at_once=deaths > 0,
        )

    async def _note_batch(self, spans: Mapping[int, Span], deaths: int) -> None:
        async with self._db.transaction() as tx:
            await in_hand.note(tx, self._feed, spans, self.instance_id, deaths)

    async def _forget_batch(self, partitions: Sequence[int]) -> None:
        async with self._db.transaction() as tx:
            await in_hand.forget(tx, self._feed, partitions, self.instance_id)

    async def _take(self, parked_ids: Sequence[int], instance_id: InstanceId | None, deaths: int = 0) -> None:
        async with self._db.transaction() as tx:
            await parked.take(tx, parked_ids, instance_id, deaths)


class Note:
    """A context for work that may be slow. A note is written after `NOTED_AFTER_SECONDS`, and deleted when the work ends.

    Usually the work ends before a note is written.
    """

    def __init__(self, note: Work, forget: Work, *, at_once: bool) -> None:
        self._note = note
        self._forget = forget
        self._at_once = at_once
        self._writing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        if self._at_once:
            await self._note()
        self._timer = asyncio.get_running_loop().call_later(NOTED_AFTER_SECONDS, self._write)

    async def __aexit__(self, *_: object) -> None:
        self._timer.cancel()
        if self._at_once or self._writing is not None:
            # A note that stays is harmless: it counts only once its instance is dead, and the instance deletes it when it reads again.
            await asyncio.wait([asyncio.ensure_future(self._take_back())])

    def _write(self) -> None:
        self._writing = asyncio.ensure_future(_quietly(self._note()))

    async def _take_back(self) -> None:
        if self._writing is not None:
            await self._writing
        await _quietly(self._forget())


async def _quietly(work: Awaitable[None]) -> None:
    try:
        await work
    except (*GONE, *RETRIED) as error:
        log.warning("what is in hand is not noted", error=repr(error))
