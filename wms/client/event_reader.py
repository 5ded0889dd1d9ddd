"""A reader of a gateway's server-sent events, each of which is a fact about one of the user's own jobs."""

import asyncio
from collections import deque
from collections.abc import Sequence

import aiohttp
import msgspec

from wms.errors import Unavailable

LINE_LIMIT = 2_000_000
EVENTS_LIMIT = 10_000
"""How many received events are kept until they are polled. Older ones are dropped, since an event only signals that something changed."""
QUIET_SECONDS = 60.0
"""After how many seconds without a line the connection counts as dead. A gateway is never silent for so long."""
_DATA = b"data: "


class EventOfGateway(msgspec.Struct, frozen=True):
    """One event as a gateway sent it."""

    payload: bytes
    """The message about a job, as encoded JSON, such as `wms.job.events` has it."""


class EventReader:
    """A reader of the stream of server-sent events at one URL. It returns events from the call of `start` on."""

    def __init__(self, session: aiohttp.ClientSession, url: str, headers: dict[str, str]) -> None:
        self._session = session
        self._url = url
        self._headers = headers
        self._answer: aiohttp.ClientResponse | None = None
        self._read = deque[EventOfGateway](maxlen=EVENTS_LIMIT)
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connect. Raise Unavailable if the gateway sends no events."""
        timeout = aiohttp.ClientTimeout(total=None, sock_read=QUIET_SECONDS)
        try:
            self._answer = await self._session.get(
                self._url,
                headers=self._headers,
                timeout=timeout,
                allow_redirects=False,
                read_bufsize=LINE_LIMIT,
            )
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise Unavailable(f"no events at {self._url}: {error!r}") from None
        if self._answer.status != 200:
            await self.close()
            raise Unavailable(f"no events at {self._url}: status {self._answer.status}")
        self._task = asyncio.create_task(self._follow(self._answer), name="gateway events")

    async def poll(self, timeout_seconds: float, limit: int) -> Sequence[EventOfGateway]:
        """Return up to `limit` new events; empty if none came in time. Raise Unavailable if the stream has ended."""
        if not self._read:
            self._news.clear()
            assert self._task is not None, "start() comes first"
            waiting = asyncio.create_task(self._news.wait())
            await asyncio.wait(
                [waiting, self._task], timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            waiting.cancel()
            if self._task.done() and not self._read:
                raise Unavailable(f"the stream at {self._url} has ended")
        return [self._read.popleft() for _ in range(min(limit, len(self._read)))]

    async def close(self) -> None:
        """Disconnect from the gateway."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._answer is not None:
            self._answer.close()

    async def _follow(self, answer: aiohttp.ClientResponse) -> None:
        try:
            while line := await answer.content.readline():
                if line.startswith(_DATA):
                    self._read.append(EventOfGateway(line[len(_DATA) :].strip()))
                    self._news.set()
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
            return
