"""Forwards exchanges of pilots' secrets to the services, and returns the answers. The gateway can neither read nor forge them.

All gateways read the answers from one topic, and each ignores answers that none of its requests waits for.
"""

import asyncio
from collections import defaultdict
from typing import Final

from services.gateway.problem import TooMany
from wms.bus.grouped_sends import GroupedSends
from wms.bus.inbox import Inbox
from wms.bus.kafka import Kafka, bearing
from wms.bus.topics import find
from wms.errors import Unavailable
from wms.messages.pilot_exchange import ANSWERS_TOPIC, TOPIC, ExchangeAnswer, SecretExchange
from wms.messages.wire import Codec, encode

AGAIN_SECONDS: Final = 5.0
"""After this many seconds without an answer, an exchange is sent again."""
WAITING_LIMIT: Final = 5_000
"""The most exchanges that may wait for an answer at a time; further ones are refused with TooMany."""

_CODEC: Codec[ExchangeAnswer] = Codec(ExchangeAnswer)


class ExchangeAnswers:
    """Sends exchanges of pilots' secrets and waits for their answers, which `run` reads."""

    name = "exchanges"

    def __init__(self, kafka: Kafka, outbox: GroupedSends) -> None:
        """Make an object that sends by `outbox` and reads answers through `kafka`."""
        self._kafka = kafka
        self._outbox = outbox
        self._inbox: Inbox[ExchangeAnswer] | None = None
        self._is_read = asyncio.Event()
        self._waiting: defaultdict[tuple[str, str], list[asyncio.Future[ExchangeAnswer]]] = defaultdict(list)

    async def run(self) -> None:
        """Read answers from Kafka until cancelled. Raise Unavailable if the broker fails."""
        self._inbox = inbox = Inbox(self._kafka, find(ANSWERS_TOPIC), _CODEC)
        try:
            await inbox.start()
            self._is_read.set()
            while True:
                for answer in await inbox.poll(1.0):
                    self._pass_on(answer)
        finally:
            self._is_read.clear()
            self._inbox = None
            await inbox.close()

    async def ask(self, exchange: SecretExchange, seconds: float) -> ExchangeAnswer:
        """Send an exchange, repeatedly, and return the answer.

        Raise Unavailable if none comes within `seconds`, and TooMany if 5,000 exchanges wait already.
        """
        if len(self._waiting) >= WAITING_LIMIT:
            raise TooMany("too many pilots begin at once", AGAIN_SECONDS)
        key = exchange.pilot_id, exchange.exchange_id
        answer: asyncio.Future[ExchangeAnswer] = asyncio.get_running_loop().create_future()
        self._waiting[key].append(answer)
        try:
            async with asyncio.timeout(seconds):
                await self._is_read.wait()
                return await self._sent(exchange, answer)
        except TimeoutError:
            raise Unavailable("no service has answered the exchange of the secret") from None
        finally:
            self._waiting[key].remove(answer)
            if not self._waiting[key]:
                del self._waiting[key]

    async def _sent(
        self, exchange: SecretExchange, answer: "asyncio.Future[ExchangeAnswer]"
    ) -> ExchangeAnswer:
        while not answer.done():
            await self._outbox.send(TOPIC, bearing(exchange.pilot_id, encode(exchange), ""))
            if self._inbox is not None:
                self._inbox.hurry()
            await asyncio.wait([answer], timeout=AGAIN_SECONDS)
        return answer.result()

    def _pass_on(self, answer: ExchangeAnswer) -> None:
        for each in self._waiting.get((answer.pilot_id, answer.exchange_id), ()):
            if not each.done():
                each.set_result(answer)
