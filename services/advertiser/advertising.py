"""Publishes the ads of one source's computing elements: all once in each period, and single ones at once after important changes.

While a source cannot be read, nothing is published and the ads expire. A computing element that its source no longer reports is withdrawn.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog
from msgspec.structs import replace

from services.advertiser.site_token import SiteToken
from services.advertiser.sources import AdvertisedSource
from services.advertiser.statement import AdContent, important_change, state
from wms.bus.kafka import Kafka
from wms.errors import Rejected, Unavailable
from wms.ids import CeId
from wms.messages.ads import TOPIC, Ad, Advertise, AdvertiserMessage, AdvertiserState, Withdraw
from wms.messages.wire import Codec, encode
from wms.runtime.every import Every

log = structlog.get_logger()

_CODEC: Codec[Ad] = Codec(Ad)
SITES_TOLD: Final = 3


class Publisher:
    """Sends the messages of an advertiser to their Kafka topic, with the token of the site."""

    def __init__(self, kafka: Kafka, token: SiteToken) -> None:
        self._kafka = kafka
        self.token = token

    async def publish(self, messages: Sequence[AdvertiserMessage]) -> None:
        """Send these messages, and return once Kafka has stored them. Raise Rejected if the token file cannot be read."""
        if not messages:
            return
        headers = [("authorization", f"Bearer {self.token.text()}".encode())]
        keys = [_key(message).encode() for message in messages]
        await self._kafka.send_many(TOPIC, keys, [encode(message) for message in messages], headers)


class SourceLoop:
    """A loop that advertises one source of computing elements periodically. It closes the source at its end."""

    def __init__(self, advertising: "AdPublisher", source: AdvertisedSource) -> None:
        self.name = f"advertise-{source.name}"
        self._advertising = advertising
        self._every = Every(self.name, source.look_seconds, advertising.read_and_publish)
        self._source = source

    def trouble(self) -> str:
        """Return what is wrong with the loop, for the operator. Empty if nothing is."""
        return self._every.trouble() or self._advertising.trouble

    async def run(self) -> None:
        """Read the source periodically until cancelled, then close the source."""
        try:
            await self._every.run()
        finally:
            if self._source.close is not None:
                await self._source.close()


class AdPublisher:
    """Publishes the ads of one source. It keeps the last ad of each computing element to detect important changes."""

    def __init__(
        self, publisher: Publisher, source: AdvertisedSource, *, now: Callable[[], datetime]
    ) -> None:
        self._publisher = publisher
        self._source = source
        self._now = now
        self._said: dict[CeId, AdContent] = {}
        self._said_at: datetime | None = None
        self.trouble = ""
        """What keeps elements of the source from being advertised, for the operator. Empty if nothing does."""

    async def read_and_publish(self) -> None:
        """Read the source once and publish: all ads if a period has passed, else only those with important changes.

        Computing elements that the source no longer returns are withdrawn. Raise Unavailable if it cannot be read or understood.
        """
        found = self._own(await self._look())
        whole = self._due()
        changes = {place: important_change(self._said.get(place), each) for place, each in found.items()}
        told = {place: each for place, each in found.items() if whole or changes[place]}
        missing = [place for place in self._said if place not in found]
        gone = [place for place in missing if not self._source.may_still_exist(place)]
        if not told and not gone:
            return
        now = self._now()
        ads = [self._ad(each, now) for each in told.values()]
        await self._publisher.publish([each for each in ads if _readable(each)])
        await self._publisher.publish([_withdraw(place, now) for place in gone])
        # Small changes add up: a change is judged against the last ad, not against the last reading.
        kept = {place: self._said[place] for place in missing if place not in gone}
        self._said = kept | {place: told.get(place) or self._said[place] for place in found}
        if whole:
            self._said_at = now
        reasons = sorted({reason for reason in changes.values() if reason})
        log.info("advertised", elements=len(told), withdrawn=len(gone), changes=reasons)

    async def _look(self) -> dict[CeId, AdContent]:
        counted_at = self._now() - timedelta(seconds=self._source.lag_seconds)
        try:
            seen = await self._source.provider.read()
        except Rejected as error:
            # A faulty statement of one element must not keep the others from being published.
            raise Unavailable(f"what it says is not understood: {error}") from None
        found = {}
        for each in seen:
            statement = state(each, self._source.settings(each.offer))
            if fault := each.offer.fault():
                log.warning("element not advertised", site=each.offer.site, ce=each.offer.ce, reason=fault)
            else:
                found[statement.place] = replace(statement, observed_at=each.observed_at or counted_at)
        return found

    def _own(self, found: dict[CeId, AdContent]) -> dict[CeId, AdContent]:
        """Return the elements of the sites that the token covers. Others would be refused: they are told to the operator."""
        others = self._publisher.token.others({place.site for place in found})
        self.trouble = (
            f"the token may not speak for {', '.join(sorted(others)[:SITES_TOLD])}" if others else ""
        )
        return {place: each for place, each in found.items() if place.site not in others}

    def _due(self) -> bool:
        if self._said_at is None:
            return True
        return (self._now() - self._said_at).total_seconds() >= self._source.period_seconds

    def _ad(self, said: AdContent, now: datetime) -> Advertise:
        return Advertise(
            element=said.element,
            advertised_at=now,
            lifetime_seconds=self._source.lifetime_seconds,
            attributes=said.attributes,
            expressions=said.expressions,
            requirements=said.requirements,
            rank=said.rank,
            observed_at=said.observed_at,
        )


def _readable(ad: Advertise) -> bool:
    """Return whether a matcher would accept the ad. An ad may be invalid, or too large for a message."""
    try:
        _CODEC.decode(encode(ad))
    except Rejected as error:
        log.warning("element not advertised", site=ad.element.site, ce=ad.element.ce, reason=str(error))
        return False
    return True


def _withdraw(place: CeId, now: datetime) -> Withdraw:
    return Withdraw(site=place.site, ce=place.ce, advertised_at=now)


def _key(message: AdvertiserMessage) -> str:
    if isinstance(message, AdvertiserState):
        return message.host
    said = message.element if isinstance(message, Advertise) else message
    return f"{said.site}/{said.ce}"
