"""What the advertiser is told."""

from typing import Annotated

import msgspec

from wms.runtime.config import Count, Seconds, Section, ServiceConfig


class ElementSettings(Section, frozen=True, kw_only=True):
    """One computing element of this machine: what is not said is read from the machine."""

    site: str
    ce: str = "local"
    slots: Count = 0
    """How many jobs at once; 0: one a core."""
    slots_per_pilot: Count = 0
    """0: as many as the element has, but not over eight."""
    memory_mb: Count = 0
    """Of all slots together; 0: what the machine has."""
    max_cpu_time: Count = 864_000
    max_waiting_pilots: Count = 4
    setup: str = "default"
    tags: list[str] = []
    vos: list[str] = []


class AdvertisingSettings(Section, frozen=True, kw_only=True):
    """How ads are published."""

    token_file: str
    """A token of kind site; it says for which sites this advertiser may speak."""
    period_seconds: Seconds = 60.0
    lifetime_seconds: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 180.0


class Config(ServiceConfig, frozen=True, kw_only=True):
    """The whole file."""

    advertising: AdvertisingSettings
    elements: list[ElementSettings]
