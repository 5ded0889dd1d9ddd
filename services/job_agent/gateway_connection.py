"""The connection of a pilot to a gateway over HTTPS: its requests, and the stream of the orders that services send to it.

Sizes and times of requests are limited, and each has the pilot's token. Redirections are refused, since they would send the
token elsewhere.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import aiohttp

from services.job_agent.gateway_session import FAILURES, bearer, gateway_session, unanswered
from wms.auth.envelope import ENVELOPE_BYTES
from wms.errors import Unavailable
from wms.gateway.address import PREFIX, checked_url
from wms.gateway.refusal import refusal
from wms.messages.wire import PAYLOAD_LIMIT
from wms.runtime.pilot_config import GatewayAccess
from wms.web import body

ANSWER_LIMIT: Final = 200_000
CONNECTIONS: Final = 8
"""The most connections of one pilot for its messages and orders."""
CONNECT_SECONDS: Final = 10.0
QUIET_SECONDS: Final = 40.0
"""Seconds without a byte after which the stream of orders counts as broken. A working gateway sends something every 20 seconds or sooner."""
LINE_LIMIT: Final = PAYLOAD_LIMIT + ENVELOPE_BYTES + 100
_DATA = b"data: "


class GatewayConnection:
    """The HTTPS connections of one pilot to its gateway: for single requests and for the stream of orders."""

    def __init__(self, access: GatewayAccess, pilot_id: str) -> None:
        """Prepare a session; nothing is sent yet. `access` has the gateway's address and, in PEM, the certificates of its authorities.

        Raise Rejected if the address is malformed, or without TLS to another machine, or if the certificates cannot be read.
        """
        self._url = f"{checked_url(access.url)}{PREFIX}/pilots/{pilot_id}"
        self._session = gateway_session(access.authorities, CONNECTIONS)

    async def close(self) -> None:
        """Close all connections. A request that is under way raises Unavailable."""
        await self._session.close()

    async def post(self, path: str, raw: bytes, seconds: float, token: str = "") -> bytes:
        """Send the JSON document `raw` to `path`, below the pilot's address at the gateway, and return the body of the answer.

        An empty `token` means that the request has none. Raise Rejected if the gateway or a service refuses the request.
        Raise Unavailable if there is no answer within `seconds`, the service is unavailable, or `close` is called meanwhile.
        """
        headers = {"Content-Type": "application/json", **bearer(token)}
        try:
            async with (
                asyncio.timeout(seconds),
                self._session.post(
                    f"{self._url}{path}", data=raw, headers=headers, allow_redirects=False
                ) as answer,
            ):
                read = await body(answer, ANSWER_LIMIT)
        except FAILURES as error:
            raise unanswered(f"no answer from {self._url}", error) from None
        except (AssertionError, RuntimeError):
            # aiohttp takes for granted that nobody closes a session while it looks for the proxy of a request.
            if not self._session.closed:
                raise
            raise Unavailable("the connection to the gateway was closed") from None
        if answer.status in (200, 202):
            return read
        raise refusal(answer.status, read)

    async def stream(self, path: str, token: str) -> aiohttp.ClientResponse:
        """Open a stream of server-sent events at `path`, below the pilot's address, with the pilot's token. Return it to be read by `events`.

        Raise Rejected if the gateway refuses it, Unavailable if there is no answer or the service is unavailable.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=QUIET_SECONDS)
        try:
            answer = await self._session.get(
                f"{self._url}{path}", headers=bearer(token), timeout=timeout, allow_redirects=False
            )
            if answer.status == 200:
                return answer
            async with answer:
                read = await body(answer, ANSWER_LIMIT)
        except FAILURES as error:
            raise unanswered(f"no answer from {self._url}", error) from None
        raise refusal(answer.status, read)


async def events(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the data of each event of a stream. A comment, which the gateway sends as a sign of life, yields empty bytes.

    Raise Unavailable once the stream has ended, was silent for QUIET_SECONDS, or has a line over LINE_LIMIT bytes.
    """
    try:
        async for line in _lines(answer):
            if line.startswith(_DATA):
                yield line[len(_DATA) :]
            elif line.startswith(b":"):
                yield b""
    except FAILURES as error:
        raise unanswered(f"no answer from {answer.url}", error) from None
    raise Unavailable(f"the stream at {answer.url} has ended")


async def _lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    rest = bytearray()
    async for piece in answer.content.iter_any():
        seen = len(rest)
        rest += piece
        if (end := rest.rfind(b"\n", seen)) >= 0:
            for line in bytes(rest[:end]).split(b"\n"):
                yield line
            del rest[: end + 1]
        if len(rest) > LINE_LIMIT:
            raise Unavailable(f"the stream at {answer.url} has a line over {LINE_LIMIT:,} bytes")
