"""Reads the ads of sites before their transaction: small ones in a thread, all others in a process that can be killed."""

from typing import Final

import msgspec

from services.matcher.ads import ValidAd, read
from wms.auth.policy import may_advertise
from wms.bus.delivery import Delivery, Steps
from wms.errors import Rejected
from wms.messages.ads import Advertise, AdvertiserMessage
from wms.parsing.parser_pool import NeedsProcess, ParserPool

SMALL_BYTES: Final = 16_384
"""The most bytes, as JSON, of an ad that is read in a thread. One with a rule of its own is evaluated up to 1,000 times, and never is."""

_decoder = msgspec.json.Decoder(Advertise)


class AdParsing:
    """Checks ads of sites, whose expressions and rules may be dear."""

    def __init__(self, parsers: ParserPool) -> None:
        self._parsers = parsers

    async def refresh(self) -> None:
        """Nothing else is looked at."""

    def prepare(self, delivery: Delivery[AdvertiserMessage]) -> Steps | None:
        """Return the step that reads an ad; None for other messages, and for senders who may not speak for its site."""
        said, principal = delivery.message, delivery.principal
        if (
            not isinstance(said, Advertise)
            or principal is None
            or not may_advertise(principal, said.element.site)
        ):
            return None
        return _steps(said)

    async def prepare_parsed(self, delivery: Delivery[AdvertiserMessage]) -> Steps:
        """Read an ad in a parsing process. Raise Rejected if it is faulty, or if the process took too much time or memory."""
        said, principal = delivery.message, delivery.principal
        assert isinstance(said, Advertise), "nothing else has documents"
        assert principal is not None
        (allowed,) = await self._parsers.parse(principal.owner, allowed_by, msgspec.json.encode(said))
        return _parsed(ValidAd(said, msgspec.json.decode(allowed, type=int | None)))


def allowed_by(raw: bytes) -> list[bytes]:
    """Read an ad in JSON, and return how many jobs it allows, as JSON; it runs in a parsing process. Raise Rejected if the ad is faulty."""
    return [msgspec.json.encode(read(_decoder.decode(raw)).allowed)]


def _steps(said: Advertise) -> Steps:
    if said.element.rule or len(msgspec.json.encode(said)) > SMALL_BYTES:
        raise NeedsProcess
    yield
    try:
        return read(said)
    except Rejected as fault:
        return fault


def _parsed(valid: ValidAd) -> Steps:
    yield
    return valid
