"""The heartbeat of the advertiser: a message under the token of the site, which a matcher stores for `wms status`."""

import asyncio
import os
import platform
from collections.abc import Iterable, Sequence
from typing import Final

import structlog

from services.advertiser.advertising import Publisher, SourceLoop
from wms import __version__
from wms.bus.kafka import Kafka
from wms.errors import Rejected
from wms.messages.ads import MOST_TROUBLES, AdvertiserState, LoopTrouble
from wms.printed_text import one_line
from wms.runtime.process import check_cluster

log = structlog.get_logger()

PERIOD_SECONDS: Final = 5.0
"""Seconds between two heartbeats. With a thousand sites a matcher gets 200 a second."""
TEXT_LENGTH: Final = 1_000
"""The most characters that the message takes of a text."""


class Heartbeats:
    """A loop that publishes the state of the advertiser's loops periodically. It ends the process if the Kafka cluster is another."""

    name = "heartbeat"

    def __init__(self, publisher: Publisher, kafka: Kafka, loops: Sequence[SourceLoop]) -> None:
        self._publisher = publisher
        self._kafka = kafka
        self._loops = loops

    async def run(self) -> None:
        """Publish the state periodically until cancelled. Raise Unavailable if no Kafka broker answers, NewCluster if it is another."""
        while True:
            await check_cluster(self._kafka)
            try:
                await self._publisher.publish([self.state()])
            except Rejected as error:
                log.warning("heartbeat not sent", error=str(error))
            await asyncio.sleep(PERIOD_SECONDS)

    def state(self) -> AdvertiserState:
        """Return the present state."""
        return AdvertiserState(
            host=platform.node() or "unknown",
            pid=os.getpid(),
            version=__version__,
            troubles=tuple(_troubles(self._loops))[:MOST_TROUBLES],
        )


def _troubles(loops: Iterable[SourceLoop]) -> Iterable[LoopTrouble]:
    for each in loops:
        if trouble := each.trouble():
            yield LoopTrouble(loop=each.name, text=one_line(trouble, TEXT_LENGTH))
