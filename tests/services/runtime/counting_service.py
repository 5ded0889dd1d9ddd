"""A small real service: counts each number it is told in Postgres, and passes it on. Run by tests as a process."""

import asyncio
import os
import threading

import msgspec

from wms.bus import relay
from wms.bus.consumer import ConsumerSettings, Delivery
from wms.bus.topics import Topic
from wms.db.database import Transaction
from wms.runtime import process, watchdog
from wms.runtime.config import ServiceConfig
from wms.runtime.host import Host, serve
from wms.runtime.loop import NamedLoop

TOLD = Topic("test.told", 4, 1)
PASSED_ON = Topic("test.passed-on", 1, 1)


HANGS = -1
HANGS_AT_END = "HANGS_AT_END"
"""An environment variable: the service does not end when it is told to, and its deadline is the value, in seconds."""


class Number(msgspec.Struct, frozen=True, kw_only=True, tag="number"):
    """What it is told, and passes on."""

    n: int


async def count(tx: Transaction, batch: list[Delivery[Number]]) -> None:
    """Write down each number and send it on."""
    numbers = [each.message.n for each in batch]
    while HANGS in numbers:
        """Stand for a message that no handler ever comes to an end with, nor lets any other go on."""
    await tx.execute("insert into effect (n) select unnest($1::bigint[])", numbers)
    for each in batch:
        tx.send(PASSED_ON.name, str(each.message.n), each.message)


async def build(host: Host, config: ServiceConfig) -> None:
    """Put it together. Small batches, each forgotten by itself, so that a fault strikes between two of them."""
    relay.FORGET_EVERY_SECONDS = 0.0
    watchdog.BLOCKED_LOOKS = 3
    if HANGS_AT_END in os.environ:
        host.add(NamedLoop("stubborn", _stubborn))
    host.consume("told", TOLD, Number, count, policy=ConsumerSettings(batch=10))


async def _stubborn() -> None:
    try:
        await asyncio.Event().wait()
    finally:
        threading.Event().wait()


if __name__ == "__main__":
    process.END_SECONDS = float(os.environ.get(HANGS_AT_END, process.END_SECONDS))
    serve("counting", ServiceConfig, build)
