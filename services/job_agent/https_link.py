"""The connection of a job agent to the services through a gateway, over HTTPS. It implements the protocol `AgentLink`."""

import asyncio
import contextlib
from typing import Final

import msgspec

from services.job_agent.gateway_connection import GatewayConnection, events
from services.job_agent.pilot_credential import HeldCredential
from wms.auth.orders import PilotCredential
from wms.errors import Rejected, Unavailable
from wms.ids import AttemptId, PilotId
from wms.messages.match_requests import MatchRequest
from wms.messages.reports import Peeked, Report
from wms.messages.site_inbox import ToAgent, TokenRenewal
from wms.messages.wire import encode
from wms.runtime.pilot_config import GatewayAccess

OPEN_SECONDS: Final = 15.0
"""Seconds within which a gateway must open the stream of orders. After that `open` raises Unavailable."""
SEND_SECONDS: Final = 5.0
"""Seconds within which a gateway must accept a message. After that the message counts as not sent: Unavailable is raised."""
WAITING_LIMIT: Final = 100
"""The most received orders that can wait for `receive`. While the queue is full, no more are read from the gateway."""


class HttpsLink:
    """The connection of one job agent through a gateway: a stream of orders to it, and a request for each message that it sends."""

    def __init__(
        self, access: GatewayAccess, pilot_id: PilotId, site: str, credential: PilotCredential
    ) -> None:
        """Prepare a link, which is not connected yet. Raise Rejected if the credential has no valid key."""
        self._access = access
        self._pilot_id = pilot_id
        self._held = HeldCredential(pilot_id, site, credential)
        self._connection: GatewayConnection | None = None
        self._reading: asyncio.Task[None] | None = None
        self._waiting: asyncio.Queue[bytes] = asyncio.Queue(WAITING_LIMIT)

    @property
    def refused(self) -> int:
        """How many received messages were ignored, because no service had signed them for this pilot."""
        return self._held.codec.refused

    @property
    def token(self) -> str:
        """The pilot's present token."""
        return self._held.token

    def payload_token(self, attempt_id: AttemptId, lifetime: float) -> str:
        """Return the token with which an attempt's payload can read its own job. It expires after `lifetime` seconds, at most 90 days."""
        return self._held.payload_token(attempt_id, lifetime)

    @property
    def is_open(self) -> bool:
        """Whether the stream of orders is open. A break that was not noticed yet does not show."""
        return self._reading is not None and not self._reading.done()

    def renew(self, renewal: TokenRenewal) -> None:
        """Use the pilot's new token from now on. `renewal` has it encrypted for this pilot.

        It is ignored if it cannot be decrypted, or does not expire later than the present one. An open stream of orders goes
        on under the old token, and ends when that expires.
        """
        self._held.renew(renewal)

    async def open(self) -> None:
        """Open the stream of orders, after closing an old one. All messages that services send to the pilot from then on arrive.

        Raise Unavailable if the gateway does not open the stream within OPEN_SECONDS, or refuses the pilot.
        """
        await self.close()
        self._connection = GatewayConnection(self._access, self._pilot_id)
        attached = asyncio.Event()
        self._reading = asyncio.create_task(self._read(self._connection, attached), name="orders")
        opened = asyncio.create_task(attached.wait())
        try:
            await asyncio.wait(
                [self._reading, opened], timeout=OPEN_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            opened.cancel()
            if not attached.is_set():
                reason = _reason(self._reading)
                await self.close()
        if not attached.is_set():
            raise Unavailable(reason)

    async def close(self) -> None:
        """Close the connection, if it is open. Orders that were not received yet are dropped."""
        reading, self._reading = self._reading, None
        connection, self._connection = self._connection, None
        if reading is not None:
            reading.cancel()
            await asyncio.wait([reading])
        if connection is not None:
            await connection.close()
        self._waiting = asyncio.Queue(WAITING_LIMIT)

    async def ask(self, request: MatchRequest) -> None:
        """Send a match request. Return once the gateway has accepted it; the services answer later with an order.

        Raise Unavailable if the gateway does not accept it within SEND_SECONDS, refuses it, or the connection is closed.
        """
        await self._send(request)

    async def report(self, report: Report | Peeked) -> None:
        """Send a report, or a part of a payload's output. Return once the gateway has accepted it.

        Raise Unavailable if the gateway does not accept it within SEND_SECONDS, refuses it, or the connection is closed.
        Raise Rejected if it is too large for a message.
        """
        await self._send(report)

    async def receive(self, timeout_seconds: float) -> list[ToAgent]:
        """Wait for orders to the pilot and return all that have come; empty if none comes within `timeout_seconds`.

        Orders without a valid signature are left out. Raise Unavailable if the stream of orders is closed and none waits.
        """
        if not self.is_open and self._waiting.empty():
            raise Unavailable("the stream of orders is closed")
        payloads: list[bytes] = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                payloads.append(await self._waiting.get())
        while not self._waiting.empty():
            payloads.append(self._waiting.get_nowait())
        decoded = [self._decoded(each) for each in payloads]
        return [order for order in decoded if order is not None]

    async def check(self) -> None:
        """Raise Unavailable if the stream of orders has ended."""
        if self._reading is None or self._reading.done():
            raise Unavailable(_reason(self._reading))

    async def _read(self, connection: GatewayConnection, attached: asyncio.Event) -> None:
        """Open the stream of orders and read from it until it ends; then raise Unavailable, or Rejected if the gateway refused it.

        `attached` is set at the first event, from which on no order is missed.
        """
        async with await connection.stream("/orders", self._held.token) as answer:
            async for data in events(answer):
                # The first event says that the gateway reads the site's inbox.
                attached.set()
                if data:
                    await self._waiting.put(data)

    def _decoded(self, payload: bytes) -> ToAgent | None:
        try:
            return self._held.codec.decode(payload)
        except Rejected:
            # A service of another version signed what this agent cannot read.
            return None

    async def _send(self, message: msgspec.Struct) -> None:
        if self._connection is None:
            raise Unavailable("the link is closed")
        raw = b'{"messages":[%b]}' % encode(message)
        try:
            await self._connection.post("/messages", raw, SEND_SECONDS, self._held.token)
        except Rejected as fault:
            raise Unavailable(f"the gateway does not take the message: {fault.message}") from None


def _reason(reading: asyncio.Task[None] | None) -> str:
    """Return why the stream of orders is not open, as a sentence. `reading` is the task that reads it; None: it was closed."""
    if reading is None:
        return "the stream of orders is closed"
    if not reading.done():
        return f"the gateway has not opened the stream of orders within {OPEN_SECONDS:g} s"
    fault = None if reading.cancelled() else reading.exception()
    return f"the stream of orders has ended: {fault}"
