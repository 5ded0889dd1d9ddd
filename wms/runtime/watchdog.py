"""The watchdog of a service process: reopens Kafka partitions that are not served, and ends a process that hangs.

The supervisor starts the process again. First the watchdog records in the database which messages are being handled, so that the next process does
not hang on them.
"""

import asyncio
import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from wms.bus.consumer import Consumer
from wms.bus.membership import Membership
from wms.db import in_hand
from wms.db.database import GONE
from wms.errors import WmsError

log = structlog.get_logger()

LOOK_SECONDS = 1.0
ANEW_AFTER_SECONDS = 10.0
"""Seconds without progress after which a Kafka partition is reopened over new connections."""
STALLED_FOR_GOOD_SECONDS = 60.0
HANGS_AFTER_SECONDS = 600.0
"""A process counts as hanging if one batch of messages takes this many seconds. Each part of a batch has a much shorter time limit."""
BLOCKED_LOOKS = 20
"""The process ends after this number of consecutive checks, one a second, at which its event loop did nothing.

Checks are counted and not seconds, because a process that was stopped and continued has not been blocked.
"""
NOTE_SECONDS = 5.0
EXIT_HANGING = 75


class Stalled(WmsError):  # noqa: N818 - an outcome
    """A Kafka partition was not served for a minute, although the servers answered and its reader was reopened."""


class Watchdog:
    """Watches the consumers of a process and, from a thread, its event loop. `end` ends the process at once with an exit code.

    A process without a database has no consumers, and no membership.
    """

    name = "watchdog"

    def __init__(
        self,
        consumers: Sequence[Consumer[Any]] = (),
        url: str = "",
        membership: Membership | None = None,
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self._consumers = consumers
        self._url = url
        self._membership = membership
        self._end = end
        self._anew_at: dict[str, float] = {}
        self._turns = 0
        self._stop = threading.Event()

    async def run(self) -> None:
        """Watch until cancelled. Raise Stalled if a partition is still not served after its reader was reopened."""
        thread = threading.Thread(target=self._watch_loop, name="watchdog", daemon=True)
        thread.start()
        try:
            while True:
                self._turns += 1
                for consumer in self._consumers:
                    self.look(consumer)
                await asyncio.sleep(LOOK_SECONDS / 2)
        finally:
            self._stop.set()

    def look(self, consumer: Consumer[Any]) -> None:
        """Check one consumer now. Reopen its readers if partitions are not served, and end the process if a batch hangs.

        Raise Stalled if a partition has not been served for STALLED_FOR_GOOD_SECONDS.
        """
        if consumer.busy_seconds() > HANGS_AFTER_SECONDS:
            log.error("a batch hangs, the process ends", consumer=consumer.name, in_hand=consumer.in_hand)
            self._end(EXIT_HANGING)
        # While a server is away, nothing is served, and a new process would change nothing.
        good = self._membership.good_seconds() if self._membership is not None else 0.0
        stalled = min(consumer.progress.longest_stall_seconds(), good)
        if stalled > STALLED_FOR_GOOD_SECONDS:
            raise Stalled(f"{consumer.name}: a partition was not served for {stalled:.0f} s")
        now = time.monotonic()
        if stalled > ANEW_AFTER_SECONDS and now - self._anew_at.get(consumer.name, 0.0) > ANEW_AFTER_SECONDS:
            self._anew_at[consumer.name] = now
            consumer.begin_anew()

    def _watch_loop(self) -> None:
        seen, same = self._turns, 0
        while not self._stop.wait(LOOK_SECONDS):
            same = same + 1 if self._turns == seen else 0
            seen = self._turns
            if same >= BLOCKED_LOOKS:
                log.error("the event loop is blocked, the process ends")
                faulthandler.dump_traceback(sys.stderr)
                self._note()
                self._end(EXIT_HANGING)
                return

    def _note(self) -> None:
        """Record in the database which messages are being handled. This uses a new connection, since those of the event loop are blocked."""
        if self._membership is None:
            return
        spans = {each.feed: each.in_hand for each in self._consumers if each.in_hand}
        try:
            asyncio.run(in_hand.note_alone(self._url, spans, self._membership.instance_id, NOTE_SECONDS))
        except GONE as error:
            log.warning("what is in hand is not noted", error=repr(error))
