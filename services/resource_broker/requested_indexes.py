"""Discovery through the index servers that submissions name: cached for a limited time, and never waited for by a step.

A step asks for what is known. Without a fresh answer a search begins beside it, and the job is looked at again when it ends. In the
second half of an answer's life a search begins too, and nobody waits for it: jobs that keep coming always find a fresh answer.
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
"""The most lists of index servers whose elements are remembered."""
SEARCHES_LIMIT = 64
"""The most searches at a time; others wait their turn."""


class KnownElements(NamedTuple):
    """The elements below some index servers, when that was known (monotonic seconds), and the servers without answers."""

    elements: tuple[FoundElement, ...]
    at: float
    troubles: tuple[str, ...]


class RequestedIndexes:
    """What users' index servers lead to. `clock` returns monotonic seconds."""

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
        """Jobs whose searches have ended since they were last taken from here."""

    def refusal(self, servers: Servers) -> str:
        """Return why these servers are not asked; empty if they may be."""
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
        """Return what these servers lead to; None if a search has begun, after which the job is in `found`."""
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
        """Seconds after which a search has ended."""
        return self._settings.whole_seconds + 1.0

    @property
    def searches(self) -> int:
        """The number of searches under way."""
        return len(self._searches)

    async def close(self) -> None:
        """Cancel the searches."""
        for each in list(self._searches.values()):
            each.cancel()
        await self._discovery.close()


def admitting(elements: Iterable[FoundElement], identity: Identity) -> list[FoundElement]:
    """Return the elements whose published rules admit this owner, group and VO."""
    asker = Asker(vo=identity.vo, group=identity.group, owner=identity.owner)
    return [each for each in elements if admits(each, [asker])]


def _troubles(found: Found) -> tuple[str, ...]:
    return tuple(f"{each.url}: {each.outcome} {each.why}".strip() for each in found.unheard)


def _web(settings: RequestedIndexSettings) -> dict[str, Source]:
    web = Web(WebIdentity(proxy_file=settings.proxy_file, authorities=settings.authorities))
    return {"https": web, "http": web}
