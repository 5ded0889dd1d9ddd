"""Publishes the ads of this machine's computing elements: every period, and at once when the machine changes."""

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

import msgspec
import structlog

from services.advertiser.config import AdvertisingSettings, ElementSettings
from wms.bus.kafka import Kafka
from wms.errors import Rejected
from wms.messages.ads import TOPIC, Advertise, Withdraw
from wms.messages.wire import encode
from wms.runtime.machine import Machine
from wms.site import ComputingElement

log = structlog.get_logger()

SLOTS_PER_PILOT = 8


def element(settings: ElementSettings, machine: Machine) -> ComputingElement:
    """Return the ad of one element on this machine."""
    slots = settings.slots or machine.cores
    per_pilot = min(settings.slots_per_pilot or SLOTS_PER_PILOT, slots)
    memory = settings.memory_mb or machine.memory_mb
    return ComputingElement(
        site=settings.site,
        ce=settings.ce,
        setup=settings.setup,
        dispatcher="local",
        slots=slots,
        slots_per_pilot=per_pilot,
        cores=machine.cores,
        cores_per_pilot=per_pilot,
        memory_mb=memory * per_pilot // slots,
        max_cpu_time=settings.max_cpu_time,
        max_waiting_pilots=settings.max_waiting_pilots,
        platforms=machine.platforms,
        tags=tuple(settings.tags),
        vos=tuple(settings.vos),
        load=machine.load,
    )


class Advertising:
    """Publishes ads."""

    def __init__(
        self,
        kafka: Kafka,
        settings: AdvertisingSettings,
        elements: Sequence[ElementSettings],
        *,
        look: Callable[[], Machine],
        now: Callable[[], datetime],
    ) -> None:
        self._kafka = kafka
        self._settings = settings
        self._elements = elements
        self._look = look
        self._now = now
        self._said: list[ComputingElement] = []
        self._said_at: datetime | None = None

    async def look_and_say(self) -> None:
        """Look at the machine; publish if something that matters changed, or the period is over."""
        ads = [element(settings, machine) for machine in [self._look()] for settings in self._elements]
        if self._due() or [_steady(ad) for ad in ads] != [_steady(ad) for ad in self._said]:
            await self._say(ads)

    def _due(self) -> bool:
        if self._said_at is None:
            return True
        return (self._now() - self._said_at).total_seconds() >= self._settings.period_seconds

    async def _say(self, ads: list[ComputingElement]) -> None:
        now = self._now()
        messages = [
            Advertise(element=ad, advertised_at=now, lifetime_seconds=self._settings.lifetime_seconds)
            for ad in ads
        ]
        await self._publish(messages)
        self._said, self._said_at = ads, now
        log.info("advertised", elements=len(ads))

    async def withdraw(self) -> None:
        """Say that the elements go away."""
        now = self._now()
        await self._publish(
            [Withdraw(site=each.site, ce=each.ce, advertised_at=now) for each in self._elements]
        )

    async def _publish(self, messages: Sequence[Advertise | Withdraw]) -> None:
        token = self._token()
        keys = [f"{site}/{ce}".encode() for site, ce in map(_place, messages)]
        payloads = [encode(message) for message in messages]
        await self._kafka.send_many(TOPIC, keys, payloads, [("authorization", f"Bearer {token}".encode())])

    def _token(self) -> str:
        path = Path(self._settings.token_file)
        try:
            return path.read_text("utf-8").strip()
        except OSError as error:
            raise Rejected(
                "TOKEN_MISSING", f"{path}: {error.strerror}", "ask for a token of kind site"
            ) from None


def _place(message: Advertise | Withdraw) -> tuple[str, str]:
    said = message.element if isinstance(message, Advertise) else message
    return said.site, said.ce


def _steady(ad: ComputingElement) -> ComputingElement:
    """Return what of the ad is worth saying at once when it changes: not its load, which always does."""
    return msgspec.structs.replace(ad, load=0.0)
