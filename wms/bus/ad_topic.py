"""A source of discovery: ads of computing elements on a Kafka topic, of this system's broker or another's.

An address is `kafka://broker.example.org:9092/wms.resource.ads`. An ad is accepted if its token is valid in this system and covers the ad's
site. It is kept until it expires. A topic is read once from its beginning, then from the position that the last call reached.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from wms.auth.policy import may_advertise
from wms.auth.token import Verifier
from wms.bus.kafka import Kafka, KafkaSettings, Message
from wms.bus.reader import Reader
from wms.bus.topics import find
from wms.discovery.address import Address
from wms.discovery.server_answers import FoundElement, ServerAnswer
from wms.errors import Rejected
from wms.glue.ad import element_of
from wms.glue.glue1 import GlueComputingElement
from wms.glue.offer import described
from wms.ids import CeId
from wms.messages.ads import TOPIC, Ad, Advertise, Withdraw
from wms.messages.wire import Codec

DISCOVERED: Final = "DiscoveredThrough"
"""The attribute of ads whose computing element was found by discovery. Its value is the address where discovery began.

Ads with it are not accepted from a topic. Otherwise two systems that read each other's ads would keep dead elements alive.
"""
ADS_LIMIT: Final = 100_000
"""How many ads are kept of one topic at most. Ads of further computing elements are dropped."""
_POLL_SECONDS = 0.25
_POLL_LIMIT = 1_000
_CODEC: Codec[Ad] = Codec(Ad)


class AdTopic:
    """Finds computing elements by the ads on topics at `kafka:` addresses. `now` is a function that returns the present time."""

    def __init__(self, settings: KafkaSettings, verifier: Verifier, now: Callable[[], datetime]) -> None:
        self._settings = settings
        self._verifier = verifier
        self._now = now
        self._readings: dict[str, _Reading] = {}
        self._opening = asyncio.Lock()

    async def ask(self, address: Address) -> ServerAnswer:
        """Read the topic at this address up to its end, and return the computing elements whose ads have not expired.

        Raise Rejected if the address names no topic of ads, Unavailable if the Kafka broker does not answer.
        """
        reading = await self._reading(address)
        await reading.catch_up()
        return ServerAnswer(elements=tuple(reading.elements(self._now())))

    async def close(self) -> None:
        """Close the connections to all brokers; never raises."""
        for reading in self._readings.values():
            await reading.reader.close()

    async def _reading(self, address: Address) -> "_Reading":
        async with self._opening:
            if address.key not in self._readings:
                parts = urlsplit(address.url)
                topic = parts.path.strip("/") or TOPIC
                if topic != TOPIC:
                    raise Rejected("ADDRESS_INVALID", f"{topic} is no topic of ads; {TOPIC} is")
                settings = self._settings_for(parts.netloc)
                reader = await Kafka(settings, "discovery").reader(topic)
                reader.assign(dict.fromkeys(range(find(topic).partitions), 0))
                self._readings[address.key] = _Reading(reader, self._verifier, self._now)
            return self._readings[address.key]

    def _settings_for(self, bootstrap: str) -> KafkaSettings:
        """Return the settings for the Kafka broker at this address. Another system's broker does not get our credentials."""
        if bootstrap == self._settings.bootstrap:
            return self._settings
        return KafkaSettings(
            bootstrap=bootstrap, fetch_wait_ms=self._settings.fetch_wait_ms, idempotent=False
        )


class _Kept(Struct, frozen=True):
    ad: Advertise
    expires_at: datetime


class _Reading:
    """The ads of one topic that have been read so far."""

    def __init__(self, reader: Reader, verifier: Verifier, now: Callable[[], datetime]) -> None:
        self.reader = reader
        self._verifier = verifier
        self._now = now
        self._kept: dict[CeId, _Kept] = {}

    async def catch_up(self) -> None:
        """Read all ads that the topic holds at the time of the call. Raise Unavailable if the Kafka broker does not answer."""
        answered = self.reader.answered_at()
        self.reader.hurry()
        while True:
            found = await self.reader.poll(_POLL_SECONDS, _POLL_LIMIT)
            for message in found:
                self._take(message)
            if not found and self.reader.answered_at() > answered and not await self.reader.unread():
                return

    def elements(self, now: datetime) -> list[FoundElement]:
        """Return the computing elements whose ads have not expired at `now`. Drop expired ads."""
        self._kept = {place: each for place, each in self._kept.items() if each.expires_at > now}
        return [_element(each.ad) for each in self._kept.values()]

    def _take(self, message: Message) -> None:
        try:
            ad = _CODEC.decode(message.payload)
            site = ad.element.site if isinstance(ad, Advertise) else ad.site
            now = self._now()
            if not may_advertise(self._verifier.verify(message.token, now.timestamp()), site):
                return
        except Rejected:
            # The system that the message was sent to answers its sender.
            return
        match ad:
            case Advertise():
                self._keep(ad, now)
            case Withdraw():
                self._forget(ad)

    def _keep(self, ad: Advertise, now: datetime) -> None:
        place = ad.element.ce_id
        before = self._kept.get(place)
        newer = before is None or before.ad.advertised_at < ad.advertised_at
        if (
            newer
            and DISCOVERED not in ad.attributes
            and not ad.element.fault()
            and (before or len(self._kept) < ADS_LIMIT)
        ):
            # A clock that is ahead must not prolong an ad's life.
            begin = min(ad.advertised_at, now)
            self._kept[place] = _Kept(ad, begin + timedelta(seconds=ad.lifetime_seconds))

    def _forget(self, gone: Withdraw) -> None:
        before = self._kept.get(CeId(gone.site, gone.ce))
        if before and before.ad.advertised_at <= gone.advertised_at:
            del self._kept[CeId(gone.site, gone.ce)]


def _element(ad: Advertise) -> FoundElement:
    return FoundElement(site=ad.element.site, glue=_glue(ad), offer=ad.element)


def _glue(ad: Advertise) -> GlueComputingElement:
    try:
        return element_of(ad.attributes)
    except Rejected:
        return described(ad.element)
