"""The searches through the index servers that one user names. Results are cached for a limited time, and no job's step waits for one.

Each user has a cache, searches and connections of its own. So servers that are slow, large or false delay no other user.
"""

import asyncio
from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple, TypeAlias

from wms.bounded_cache import BoundedCache
from wms.discovery.address import address
from wms.discovery.admission import Asker, admits
from wms.discovery.discovery import Discovery
from wms.discovery.search import Found
from wms.discovery.server_answers import FoundElement
from wms.ids import CeId, Identity, JobId

Servers: TypeAlias = tuple[str, ...]
"""The addresses of index servers, as a submission names them."""
KNOWN_LIMIT = 20
"""The most results of searches that are cached for one user, one for each list of index servers."""
SEARCHES_LIMIT = 4
"""The most searches of one user at the same time. At the limit none begins, and the job waits for its turn."""
TURNS_LIMIT = 1_000
"""The most jobs of one user that wait for their turn to search. Further jobs ask again later by themselves."""

TROUBLES_TOLD = 2
TROUBLE_LIMIT = 200
"""The most characters of a message about one index server without an answer. The rest is cut off."""


class AwaitedSearch(NamedTuple):
    """Why a job has no result of a search yet: a code, and a text for its user."""

    reason: str
    text: str


DISCOVERING = AwaitedSearch("DISCOVERING", "its index servers are being asked")


class KnownElements(NamedTuple):
    """The result of one search: the elements that some index servers lead to, if their rules admit the user.

    `at` is the time of the search in monotonic seconds. `troubles` are messages about servers that gave no answer.
    """

    places: frozenset[CeId]
    at: float
    troubles: tuple[str, ...]

    def rejection(self, place: CeId) -> str:
        """Return why a job may not go to an element: no index server leads there. Empty if it may.

        The text names some servers that gave no answer, with their errors.
        """
        if place in self.places:
            return ""
        silent = "".join(f"; {each[:TROUBLE_LIMIT]}" for each in self.troubles[:TROUBLES_TOLD])
        return f"NOT_INDEXED: none of the job's index servers leads there{silent}"


class IndexSearches:
    """The searches through the index servers that one user (`identity`) names.

    A result is used for `fresh_seconds`. `clock` returns monotonic seconds. When a search ends, `tell` is called with the jobs
    that waited for it, and with those whose turn it is to search.
    """

    def __init__(
        self,
        identity: Identity,
        discovery: Discovery,
        fresh_seconds: float,
        clock: Callable[[], float],
        tell: Callable[[set[JobId]], None],
    ) -> None:
        self._identity = identity
        self._discovery = discovery
        self._fresh_seconds = fresh_seconds
        self._clock = clock
        self._tell = tell
        self._known = BoundedCache[Servers, KnownElements](KNOWN_LIMIT)
        self._searches: dict[Servers, asyncio.Task[None]] = {}
        self._waiting: dict[Servers, set[JobId]] = {}
        self._turns: dict[JobId, None] = {}
        """The jobs for which no search could begin, first come first."""

    def known(self, servers: Servers, job_id: JobId) -> KnownElements | AwaitedSearch:
        """Return the result of a search through these servers, or why there is no fresh one and the job must wait.

        A search begins if needed, and `tell` is called with the job when the search ends. If too many searches are under way,
        none begins. Then `tell` is called with the job when it is its turn, unless `TURNS_LIMIT` jobs wait already.
        """
        known, fresh = self._known.get(servers), self._fresh_seconds
        age = self._clock() - known.at if known else fresh
        if known is None or age > fresh / 2:
            self._begin(servers)
        if known is not None and age <= fresh:
            self._turns.pop(job_id, None)
            return known
        if servers in self._searches:
            self._turns.pop(job_id, None)
            self._waiting.setdefault(servers, set()).add(job_id)
            return DISCOVERING
        return self._queued(job_id)

    def _queued(self, job_id: JobId) -> AwaitedSearch:
        if len(self._turns) < TURNS_LIMIT:
            self._turns.setdefault(job_id)
        text = f"{SEARCHES_LIMIT} searches of its user are under way, the most at a time; {len(self._turns):,} jobs wait for a turn"
        return AwaitedSearch("SEARCH_QUEUED", text)

    def _begin(self, servers: Servers) -> None:
        if servers not in self._searches and len(self._searches) < SEARCHES_LIMIT:
            self._searches[servers] = asyncio.create_task(self._search(servers))

    async def _search(self, servers: Servers) -> None:
        try:
            found = await self._discovery.find([address(each, "index") for each in servers])
            places = await asyncio.to_thread(admitting, found.elements, self._identity)
            self._known[servers] = KnownElements(places, self._clock(), _troubles(found))
        finally:
            del self._searches[servers]
            self._tell(self._waiting.pop(servers, set()) | self._next())

    def _next(self) -> set[JobId]:
        """Remove from the queue, and return, as many jobs as searches may begin now."""
        called = set(islice(self._turns, SEARCHES_LIMIT - len(self._searches)))
        for each in called:
            del self._turns[each]
        return called

    @property
    def under_way(self) -> int:
        """The number of this user's searches that have not ended."""
        return len(self._searches)

    async def close(self) -> None:
        """Cancel all searches of this user, and close the connections."""
        for each in list(self._searches.values()):
            each.cancel()
        await self._discovery.close()


def admitting(elements: Sequence[FoundElement], identity: Identity) -> frozenset[CeId]:
    """Return the ids of the elements whose published access rules admit this owner, group and VO."""
    asker = Asker(vo=identity.vo, group=identity.group, owner=identity.owner)
    return frozenset(CeId(each.site, each.name) for each in elements if admits(each, [asker]))


def _troubles(found: Found) -> tuple[str, ...]:
    return tuple(f"{each.url}: {each.outcome} {each.why}".strip() for each in found.unheard)
