"""A discovery with a clock that tests set."""

from wms.discovery.answer_cache import CacheLifetimes
from wms.discovery.discovery import Discovery, DiscoveryLimits
from wms.discovery.file import FileSource
from wms.discovery.http import Web
from wms.discovery.port import Source
from wms.discovery.search import Found
from wms.web import WebIdentity

LONG = DiscoveryLimits(whole_seconds=30.0, server_seconds=30.0)


class Clock:
    """Monotonic time as the test says."""

    def __init__(self) -> None:
        self.at = 1_000.0

    def __call__(self) -> float:
        return self.at


def discovery(clock: Clock, pace: DiscoveryLimits = LONG, terms: CacheLifetimes | None = None) -> Discovery:
    sources: dict[str, Source] = {"http": Web(WebIdentity()), "file": FileSource()}
    return Discovery(sources, pace=pace, terms=terms, clock=clock, rng=lambda: 0.0)


def sites(found: Found) -> list[str]:
    return [each.site for each in found.elements]


def outcomes(found: Found) -> dict[str, str]:
    return {each.url.rpartition("/")[2]: each.outcome for each in found.visits}
