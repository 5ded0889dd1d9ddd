"""Discovery through the index servers that submissions name, in the background: no step of the broker waits for an answer.

Answers are cached for a limited time. Without one a search begins, and the job is looked at again when it ends. A search also
begins when half of an answer's life is over. So a steady flow of jobs always finds a fresh answer.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple, TypeAlias

import structlog

from services.resource_broker.config import RequestedIndexSettings
from wms.bounded_cache import BoundedCache
from wms.discovery.address import WEB, Address, address
from wms.discovery.admission import Asker, admits
from wms.discovery.discovery import Discovery, DiscoveryLimits
from wms.discovery.http import Web
from wms.discovery.memory import CacheLifetimes
from wms.discovery.port import Source
from wms.discovery.server_answers import FoundElement
from wms.discovery.walk import Bounds, Found
from wms.errors import Rejected
from wms.ids import Identity, JobId
from wms.web import WebIdentity

log = structlog.get_logger()

Servers: TypeAlias = tuple[str, ...]
"""The addresses of index servers, as a submission names them."""
KNOWN_LIMIT = 1_000
"""The most lists of index servers whose answers are cached."""
SEARCHES_LIMIT = 64
"""The most searches at the same time; further ones are begun when the job is looked at again."""


class KnownElements(NamedTuple):
    """What a search through index servers found, and when (monotonic seconds). `troubles` describe servers that did not answer."""

    elements: tuple[FoundElement, ...]
    at: float
    troubles: tuple[str, ...]


class IndexAnswer(NamedTuple):
    """What a job's index servers answer: why they are not asked, or what they lead to; neither while they are asked."""

    refusal: str
    known: KnownElements | None


class RequestedIndexes:
    """Finds and caches the computing elements behind the index servers that users name. `clock` returns monotonic seconds."""

    def __init__(
        self,
        settings: RequestedIndexSettings,
        sources: dict[str, Source] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._discovery = Discovery(
            sources or _web(settings),
            pace=DiscoveryLimits(
                server_seconds=settings.server_seconds,
                whole_seconds=settings.whole_seconds,
                patience_seconds=settings.patience_seconds,
                servers_at_once=settings.servers_at_once,
            ),
            bounds=Bounds(hosts=tuple(settings.hosts)),
            terms=CacheLifetimes(fresh_seconds=settings.fresh_seconds / 2),
        )
        self._known = BoundedCache[Servers, KnownElements](KNOWN_LIMIT)
        self._searches: dict[Servers, asyncio.Task[None]] = {}
        self._waiting: dict[Servers, set[JobId]] = {}
        self.found: set[JobId] = set()
        """Jobs whose searches have ended; whoever reads the set replaces it by an empty one."""

    def answer(self, servers: Servers, job_id: JobId) -> IndexAnswer:
        """Return the answer for a job, in the event loop: a search may begin, after which the job is in `found`."""
        why = self.refusal(servers)
        return IndexAnswer(why, None if why else self.known(servers, job_id))

    def refusal(self, servers: Servers) -> str:
        """Return why these index servers must not be asked, such as a host that is not allowed; empty if they may be asked."""
        for text in servers:
            try:
                root = address(text, "index")
            except Rejected as error:
                return error.message
            if root.scheme not in WEB:
                return f"{root.scheme}: no such index server is asked for a job"
            if not any(fnmatchcase(root.host, each.lower()) for each in self._settings.hosts):
                return f"{root.host}: the broker's `[indexes] hosts` allows no index server there"
        return ""

    def known(self, servers: Servers, job_id: JobId) -> KnownElements | None:
        """Return the elements behind these index servers, if a fresh answer is cached.

        Otherwise return None and begin a search; after it the job's id is in `found`.
        """
        known, fresh = self._known.get(servers), self._settings.fresh_seconds
        age = self._clock() - known.at if known else fresh
        if known is None or age > fresh / 2:
            self._begin(servers)
        if known is not None and age <= fresh:
            return known
        self._waiting.setdefault(servers, set()).add(job_id)
        return None

    def _begin(self, servers: Servers) -> None:
        if servers not in self._searches and len(self._searches) < SEARCHES_LIMIT:
            self._searches[servers] = asyncio.create_task(self._search(servers))

    async def _search(self, servers: Servers) -> None:
        try:
            roots: Sequence[Address] = [address(each, "index") for each in servers]
            found = await self._discovery.find(roots)
            self._known[servers] = KnownElements(found.elements, self._clock(), _troubles(found))
        finally:
            del self._searches[servers]
            self.found |= self._waiting.pop(servers, set())

    @property
    def seconds(self) -> float:
        """Seconds after which a search that begins now has ended."""
        return self._settings.whole_seconds + 1.0

    @property
    def searches(self) -> int:
        """How many searches through index servers are under way."""
        return len(self._searches)

    async def close(self) -> None:
        """Cancel all searches through index servers that are under way."""
        for each in list(self._searches.values()):
            each.cancel()
        await self._discovery.close()


def admitting(elements: Iterable[FoundElement], identity: Identity) -> list[FoundElement]:
    """Return the computing elements whose published access rules admit this owner, group and VO."""
    asker = Asker(vo=identity.vo, group=identity.group, owner=identity.owner)
    return [each for each in elements if admits(each, [asker])]


def _troubles(found: Found) -> tuple[str, ...]:
    return tuple(f"{each.url}: {each.outcome} {each.why}".strip() for each in found.unheard)


def _web(settings: RequestedIndexSettings) -> dict[str, Source]:
    web = Web(WebIdentity(proxy_file=settings.proxy_file, authorities=settings.authorities))
    return {"https": web, "http": web}
