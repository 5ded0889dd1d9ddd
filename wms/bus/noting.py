"""Noting what is in hand for longer than usual, so that a successor knows what this process may have died of."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import structlog

from wms.db import in_hand, parked
from wms.db.database import GONE, RETRIED, Database
from wms.db.in_hand import Span
from wms.db.offset import Feed
from wms.ids import InstanceId

log = structlog.get_logger()

NOTED_AFTER_SECONDS = 1.0
"""Nearly no batch takes so long, so that notes cost nothing."""


class Noting:
    """Writes notes of one feed for one instance."""

    def __init__(self, db: Database, feed: Feed, instance_id: InstanceId) -> None:
        self._db = db
        self._feed = feed
        self.instance_id = instance_id

    @asynccontextmanager
    async def batch(self, spans: Mapping[int, Span], *, at_once: bool = False) -> AsyncIterator[None]:
        """Note these while the block runs, if it runs for long; `at_once`: before it begins."""
        if at_once:
            await self._note_batch(spans)
        async with self._while_it_lasts(
            lambda: self._note_batch(spans), lambda: self._forget_batch(list(spans)), noted=at_once
        ):
            yield

    @asynccontextmanager
    async def parked(self, parked_ids: Sequence[int], *, at_once: bool = False) -> AsyncIterator[None]:
        """Note that these parked messages are in hand, if the block runs for long; `at_once`: before it begins."""
        if at_once:
            await self._take(parked_ids, self.instance_id)
        async with self._while_it_lasts(
            lambda: self._take(parked_ids, self.instance_id),
            lambda: self._take(parked_ids, None),
            noted=at_once,
        ):
            yield

    @asynccontextmanager
    async def _while_it_lasts(
        self,
        note: Callable[[], Awaitable[None]],
        forget: Callable[[], Awaitable[None]],
        *,
        noted: bool = False,
    ) -> AsyncIterator[None]:
        writing: list[asyncio.Task[None]] = []
        timer = asyncio.get_running_loop().call_later(
            NOTED_AFTER_SECONDS, lambda: writing.append(asyncio.ensure_future(_quietly(note())))
        )
        try:
            yield
        finally:
            timer.cancel()
            if writing or noted:
                # A note that stays is no harm while this instance lives: it counts when its instance is dead.
                await asyncio.wait([*writing, asyncio.ensure_future(_after(writing, forget))])

    async def _note_batch(self, spans: Mapping[int, Span]) -> None:
        async with self._db.transaction() as tx:
            await in_hand.note(tx, self._feed, spans, self.instance_id)

    async def _forget_batch(self, partitions: Sequence[int]) -> None:
        async with self._db.transaction() as tx:
            await in_hand.forget(tx, self._feed, partitions, self.instance_id)

    async def _take(self, parked_ids: Sequence[int], instance_id: InstanceId | None) -> None:
        async with self._db.transaction() as tx:
            await parked.take(tx, parked_ids, instance_id)


async def _after(writing: Sequence[asyncio.Task[None]], forget: Callable[[], Awaitable[None]]) -> None:
    if writing:
        await asyncio.wait(writing)
    await _quietly(forget())


async def _quietly(work: Awaitable[None]) -> None:
    try:
        await work
    except (*GONE, *RETRIED) as error:
        log.warning("what is in hand is not noted", error=repr(error))
