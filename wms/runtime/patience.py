"""A step of a service's start that is tried again until its servers answer."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog

from wms.db.database import GONE, RETRIED
from wms.errors import Unavailable

log = structlog.get_logger()

T = TypeVar("T")

CONNECT_SECONDS: Final = 60.0
PAUSE_SECONDS: Final = 0.25


async def patiently(connect: Callable[[], Awaitable[T]], within: float = CONNECT_SECONDS) -> T:
    """Call `connect` again and again until its servers answer, and return its result. Raise Unavailable once `within` seconds have passed."""
    deadline = time.monotonic() + within
    while True:
        try:
            return await connect()
        except (Unavailable, *GONE, *RETRIED) as error:
            if time.monotonic() > deadline:
                raise Unavailable(str(error) or repr(error)) from error
            log.info("not connected yet", error=repr(error))
            await asyncio.sleep(PAUSE_SECONDS)
