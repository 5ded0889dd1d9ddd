"""Reads the computing elements that index servers lead to. Each is advertised under its own site.

Sites that the advertiser's token does not cover are left out. A computing element whose server does not answer this time is not
withdrawn.
"""

from collections.abc import Callable
from pathlib import Path

import structlog
from msgspec.structs import replace

from services.advertiser.config import IndexSettings
from services.advertiser.provider import SeenElement
from services.advertiser.queues import wanted
from wms.auth.policy import may_advertise
from wms.auth.principal import Principal
from wms.auth.token import Verifier
from wms.bus.ad_topic import DISCOVERED, AdTopic
from wms.bus.kafka import KafkaSettings
from wms.discovery.address import Address, address, near
from wms.discovery.admission import Asker, admits
from wms.discovery.answer_cache import CacheLifetimes
from wms.discovery.discovery import Discovery, DiscoveryLimits
from wms.discovery.file import FileSource
from wms.discovery.http import Web
from wms.discovery.port import Source
from wms.discovery.search import Bounds, Found
from wms.discovery.server_answers import FoundElement
from wms.errors import Rejected, Unavailable
from wms.ids import CeId
from wms.runtime import clock
from wms.site import ComputingElement
from wms.web import WebIdentity

log = structlog.get_logger()

TROUBLES_TOLD = 20


class Indexes:
    """The source of computing elements that are found through index servers. `voice` returns the advertiser's identity, as its token says.

    Raise Rejected for settings that cannot work.
    """

    def __init__(self, settings: IndexSettings, kafka: KafkaSettings, voice: Callable[[], Principal]) -> None:
        if not settings.urls:
            raise Rejected("CONFIG_INVALID", "indexes: no urls are said")
        through = {DISCOVERED: settings.urls[0].partition("?")[0]}
        self.settings = replace(settings, attributes=settings.attributes | through)
        self._voice = voice
        self._roots = [address(url, "index") for url in settings.urls]
        self._askers = [Asker(vo=each.vo, group=each.group, owner=each.owner) for each in settings.for_whom]
        self._topics = _topics(settings, kafka)
        self._discovery = Discovery(
            _sources(settings, self._topics),
            pace=DiscoveryLimits(
                server_seconds=settings.server_seconds,
                whole_seconds=settings.whole_seconds,
                patience_seconds=settings.patience_seconds,
                servers_at_once=settings.servers_at_once,
            ),
            bounds=Bounds(hosts=tuple(settings.hosts or near(settings.urls))),
            terms=CacheLifetimes(fresh_seconds=settings.fresh_seconds),
        )
        self._known = _Known()
        self._told_of: set[str] = set()

    async def read(self) -> list[SeenElement]:
        """Ask the index servers and return the computing elements to advertise. Raise Unavailable if no server answers.

        Elements at sites that the token does not cover are left out, and elements that admit none of the configured identities.
        """
        found = await self._discovery.find(self._roots)
        if found.unheard and len(found.unheard) == len(found.visits):
            raise Unavailable(f"no index answers: {found.unheard[0].url}: {found.unheard[0].why or 'late'}")
        voice = self._voice()
        told: dict[CeId, tuple[str, SeenElement]] = {}
        troubles = [f"{each.url}: {each.outcome} {each.why}".strip() for each in found.unheard]
        troubles += [_twice(each.element) for each in found.doubles]
        for each in found.sightings:
            site = self._site(each.element)
            if not may_advertise(voice, site):
                troubles.append(f"{site}: our token may not speak for it")
            elif admits(each.element, self._askers):
                for seen in self._seen(each.element, site):
                    if told.setdefault(CeId(site, seen.offer.ce), (each.by, seen))[1] is not seen:
                        troubles.append(_twice(each.element))
        self._tell(set(troubles))
        self._known.learn({place: by for place, (by, _) in told.items()}, found)
        return [seen for _, seen in told.values()]

    def may_still_exist(self, place: CeId) -> bool:
        """Return whether a computing element that the last `read` did not return may still exist.

        This is so if its own server, or an index server that names it, did not answer.
        """
        return self._known.may_still_exist(place)

    async def close(self) -> None:
        """Cancel running requests and close all connections."""
        await self._discovery.close()
        if self._topics is not None:
            await self._topics.close()

    def _site(self, element: FoundElement) -> str:
        return self.settings.site or self.settings.sites.get(element.site, element.site)

    def _seen(self, element: FoundElement, site: str) -> list[SeenElement]:
        """Return a list of one element to advertise for the found one, or an empty list.

        An ad from another system is changed only in the values that the site states.
        """
        settings = replace(self.settings, site=site)
        if element.offer is None:
            return wanted(settings, [element.glue], dispatcher="arc")
        if settings.queues and element.name not in settings.queues:
            return []
        return [SeenElement(offer=_restated(element.offer, settings), glue=replace(element.glue, site=site))]

    def _tell(self, troubles: set[str]) -> None:
        """Log the faults of a search, such as servers without answers, if they differ from those of the search before."""
        if troubles != self._told_of:
            log.warning("discovery not whole", troubles=sorted(troubles)[:TROUBLES_TOLD], count=len(troubles))
        self._told_of = troubles


class _Known:
    """Records which server returned each computing element, and which servers answered in the last search."""

    def __init__(self) -> None:
        self._told_by: dict[CeId, str] = {}
        self._heard: set[str] = set()
        self._unheard: set[str] = set()
        self._index_unheard = False

    def learn(self, told_by: dict[CeId, str], found: Found) -> None:
        self._unheard = {Address(each.url, each.kind).key for each in found.unheard}
        self._heard = {Address(each.url, each.kind).key for each in found.visits} - self._unheard
        self._index_unheard = any(each.kind == "index" for each in found.unheard)
        self._told_by = {
            place: by for place, by in self._told_by.items() if self.may_still_exist(place)
        } | told_by

    def may_still_exist(self, place: CeId) -> bool:
        by = self._told_by.get(place)
        if by is None or by in self._heard:
            return False
        # A server that no longer leads there, or one that is silent and may still lead there.
        return by in self._unheard or self._index_unheard


def _twice(element: FoundElement) -> str:
    return f"{element.site}/{element.name}: told of twice; `sites` and `names` can tell them apart"


def _restated(offer: ComputingElement, settings: IndexSettings) -> ComputingElement:
    return replace(
        offer,
        site=settings.site,
        ce=settings.names.get(offer.ce, offer.ce),
        dispatcher=settings.dispatcher or offer.dispatcher,
        vos=tuple(settings.vos) or offer.vos,
        slots=settings.slots or offer.slots,
    )


def _topics(settings: IndexSettings, kafka: KafkaSettings) -> AdTopic | None:
    if settings.jwks:
        return AdTopic(kafka, Verifier.from_file(Path(settings.jwks)), clock.now)
    if any(url.startswith("kafka:") for url in settings.urls):
        raise Rejected("CONFIG_INVALID", "indexes: the ads of a broker are not believed without jwks")
    return None


def _sources(settings: IndexSettings, topics: AdTopic | None) -> dict[str, Source]:
    web = Web(
        WebIdentity(
            proxy_file=settings.proxy_file,
            token_file=settings.token_file,
            authorities=settings.authorities,
        ),
        settings.token_hosts,
    )
    sources: dict[str, Source] = {"https": web, "http": web, "file": FileSource()}
    return sources if topics is None else {**sources, "kafka": topics}
