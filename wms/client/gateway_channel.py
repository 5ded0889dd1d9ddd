"""Requests and their answers over HTTPS, through a gateway: the same messages as over Kafka, under the same ids.

A request is sent again until it is answered or its time is over, since gateways and services may be restarted meanwhile. Each
id takes effect once. Redirections are not followed, because the token would be sent to another host.
"""

import asyncio
import ssl
import time
import uuid
from typing import Any, Final

import aiohttp
import msgspec

from wms.bus.topics import Topic
from wms.client.channel import A, Channel
from wms.client.credential import TokenSource
from wms.client.event_reader import EventReader
from wms.client.gateway_sandboxes import GatewaySandboxes
from wms.client.settings import GatewayAddress
from wms.errors import Rejected, Unavailable
from wms.gateway.address import PREFIX, checked_url
from wms.gateway.refusal import refusal
from wms.messages import commands, events, queries
from wms.messages.replies import Reply
from wms.messages.wire import Codec, encode
from wms.runtime import clock
from wms.web import body

PATHS: Final = {queries.TOPIC: "/queries", commands.TOPIC: "/commands"}
ANSWER_LIMIT: Final = 4_000_000
PAUSE_SECONDS: Final = (0.2, 0.5, 1.0, 2.0)
"""Seconds from a failed request until it is sent again; the last value repeats."""


class GatewayChannel(Channel):
    """A client's channel to the services over HTTPS, through a gateway. It sends the user's token with each request."""

    def __init__(self, address: GatewayAddress, tokens: TokenSource) -> None:
        """Make a channel to a gateway. Raise Rejected for an invalid address, or for one that would send the token over a network without TLS."""
        self.client = uuid.uuid4().hex
        self._url = checked_url(address.url)
        self._authorities = address.authorities
        self._tokens = tokens
        self._codec: Codec[Reply] = Codec(Reply, rules=False)
        self._session: aiohttp.ClientSession | None = None

    async def open(self, timeout: float) -> None:
        """Connect, and check that a gateway answers.

        Raise Rejected if the token or the gateway's certificate is invalid, Unavailable if no gateway answers within `timeout` seconds.
        """
        self._tokens.read(clock.timestamp())
        connector = aiohttp.TCPConnector(limit=64, ssl=self._trusted())
        self._session = aiohttp.ClientSession(connector=connector, trust_env=True)
        try:
            await self._ask_until(time.monotonic() + timeout, "GET", "/health", b"")
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Disconnect from the gateway."""
        if self._session is not None:
            await self._session.close()

    async def ask(
        self,
        topic: str,
        request_id: str,  # noqa: ARG002 - the request has it too
        request: msgspec.Struct,
        answer: type[A],
        timeout: float,
        *,
        in_order: bool = True,
    ) -> A:
        """Post a request until it is answered, and return the answer, which is of the type `answer`.

        If `in_order` is True, the request is handled after all earlier requests of the user. Raise Rejected if the service
        refuses it, Unavailable if no answer came within `timeout` seconds.
        """
        path = PATHS[topic] + ("" if in_order else "?in_order=false")
        raw = await self._ask_until(time.monotonic() + timeout, "POST", path, encode(request))
        reply = self._codec.decode(raw)
        if not isinstance(reply, answer):
            raise TypeError(f"{type(reply).__name__} answers what only {answer.__name__} should")
        return reply

    async def end_of(self, topic: Topic) -> EventReader:
        """Return a reader of events about the user's own jobs. Raise Unavailable for any topic but that of job events."""
        if topic.name != events.TOPIC:
            raise Unavailable(f"a gateway does not tell of {topic.name}")
        reader = EventReader(self._opened(), f"{self._url}{PREFIX}/events", self._headers())
        await reader.start()
        return reader

    def sandboxes(self, job_id: int | None) -> GatewaySandboxes:
        """Return the sandbox store behind the gateway. It takes archives, and returns the output of the job `job_id` (None: of no job)."""
        return GatewaySandboxes(self._opened(), f"{self._url}{PREFIX}", self._headers(), job_id)

    def _opened(self) -> aiohttp.ClientSession:
        assert self._session is not None, "open() comes first"
        return self._session

    def _headers(self) -> dict[str, str]:
        token = self._tokens.read(clock.timestamp()).token
        return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def _trusted(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self._authorities or None)
        except (OSError, ssl.SSLError) as error:
            raise Rejected(
                "BAD_AUTHORITIES", f"no certificates in {self._authorities}: {error}", "name a file in PEM"
            ) from None

    async def _ask_until(self, deadline: float, method: str, path: str, raw: bytes) -> bytes:
        """Send a request until it is answered, and return the body of the answer.

        Raise Rejected if the request is refused, Unavailable if there is no answer at the deadline, in seconds of the monotonic clock.
        """
        fault = Unavailable(f"no gateway answers at {self._url}")
        attempt = 0
        while (left := deadline - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(left):
                    return await self._ask_once(method, path, raw)
            except ssl.SSLCertVerificationError as error:
                raise _untrusted(self._url, error) from None
            except aiohttp.ClientConnectorCertificateError as error:
                raise _untrusted(self._url, error.certificate_error) from None
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                fault = Unavailable(
                    f"no gateway answers at {self._url}: {str(error) or type(error).__name__}"
                )
            except Unavailable as error:
                fault = error
            pause = PAUSE_SECONDS[min(attempt, len(PAUSE_SECONDS) - 1)]
            await asyncio.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            attempt += 1
        raise fault

    async def _ask_once(self, method: str, path: str, raw: bytes) -> bytes:
        async with self._opened().request(
            method, f"{self._url}{PREFIX}{path}", data=raw, headers=self._headers(), allow_redirects=False
        ) as answer:
            read = await body(answer, ANSWER_LIMIT)
            if answer.status in (200, 201):
                return read
            raise refusal(answer.status, read)


def _untrusted(url: str, error: Any) -> Rejected:
    return Rejected(
        "GATEWAY_UNTRUSTED",
        f"the certificate of {url} is not trusted: {error}",
        "name its authorities in WMS_AUTHORITIES, or `authorities` in [gateway]",
    )
