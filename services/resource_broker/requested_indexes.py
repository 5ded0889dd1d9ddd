"""Discovery of computing elements through the index servers that submissions name, for each user apart.

A job's step uses the cached answer. If there is no fresh one, a search begins in the background, and the job's step is taken
again when the search ends. A search also begins when an answer is half as old as it may be, and no job waits for it. So jobs
that keep coming always find a fresh answer.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from typing import NamedTuple

from services.resource_broker.config import RequestedIndexSettings
from services.resource_broker.index_searches import AwaitedSearch, IndexSearches, KnownElements, Servers
from wms.discovery.address import WEB, address
from wms.discovery.answer_cache import CacheLifetimes
from wms.discovery.discovery import Discovery, DiscoveryLimits
from wms.discovery.port import Source
from wms.discovery.search import Bounds
from wms.errors import Rejected
from wms.ids import Identity, JobId
from wms.web import WebIdentity

USERS_LIMIT = 200
"""The most users whose results are kept. At the limit, the results of the user whose last search is the oldest are dropped.

A user whose searches are under way keeps them: a further user waits until one has ended.
"""
USERS_WAITING_LIMIT = 10_000
SERVERS_LIMIT = 200
"""The most servers that one search asks. Others are left out, since each of their documents takes processor time from all users."""
ELEMENTS_LIMIT = 20_000
"""The most elements that one search finds, and that are cached for one user. Others are left out."""
SLOW_AT_ONCE = 16
"""The most further servers that are asked at a time for one user, beside `servers_at_once`, if they are slow to answer."""


class IndexAnswer(NamedTuple):
    """What is known from a job's index servers: the reason why they are not asked, or the elements that they lead to.

    `refusal` is empty and `known` None while the job waits for a search; `awaited` then says why.
    """

    refusal: str
    known: KnownElements | None
    awaited: AwaitedSearch | None = None


class RequestedIndexes:
    """Finds and caches the computing elements behind the index servers that users name.

    `sources` are the protocols by URL scheme; None: https and http. `clock` returns monotonic seconds.
    """

    def __init__(
        self,
        settings: RequestedIndexSettings,
        sources: dict[str, Source] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._sources = sources
        self._clock = clock
        # One thread for all users: an expensive document takes half of the process at most, and the next is another user's.
        self._reader = ThreadPoolExecutor(1, "index-reader")
        self._users: OrderedDict[Identity, IndexSearches] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()
        self.found: set[JobId] = set()
        """Jobs that waited for a search that has ended, or whose turn it is. Whoever reads the set replaces it by an empty one."""
        self._turns: dict[Identity, JobId] = {}
        """For each user without room among `USERS_LIMIT`, the job that asked first; first come first."""

    def answer(self, servers: Servers, identity: Identity, job_id: JobId) -> IndexAnswer:
        """Return what is known from a job's index servers, without waiting. It must be called in the event loop.

        If nothing fresh is known, a search begins as soon as the job's user may have another. When the search ends, or may
        begin, the job is in `found`.
        """
        if why := self.refusal(servers):
            return IndexAnswer(why, None)
        found = self.known(servers, identity, job_id)
        if isinstance(found, AwaitedSearch):
            return IndexAnswer("", None, found)
        return IndexAnswer("", found)

    def refusal(self, servers: Servers) -> str:
        """Return why these servers are not asked: a malformed address, or one that the settings do not allow. Empty if they may be."""
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

    def known(self, servers: Servers, identity: Identity, job_id: JobId) -> KnownElements | AwaitedSearch:
        """Return the elements that these servers lead to for a user, or why the job must wait for a search.

        When that search ends, or may begin, the job is in `found`.
        """
        if identity not in self._users and not self._has_room():
            return self._queued(identity, job_id)
        self._turns.pop(identity, None)
        return self._searches_of(identity).known(servers, job_id)

    def _searches_of(self, identity: Identity) -> IndexSearches:
        if identity not in self._users:
            self._users[identity] = IndexSearches(
                identity, self._discovery(), self._settings.fresh_seconds, self._clock, self._tell
            )
        self._users.move_to_end(identity)
        return self._users[identity]

    def _has_room(self) -> bool:
        """Return whether another user may search; if `USERS_LIMIT` is reached, the longest unused user without searches is dropped."""
        if len(self._users) < USERS_LIMIT:
            return True
        unused = next((who for who, each in self._users.items() if not each.under_way), None)
        if unused is None:
            return False
        task = asyncio.create_task(self._users.pop(unused).close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return True

    def _queued(self, identity: Identity, job_id: JobId) -> AwaitedSearch:
        if len(self._turns) < USERS_WAITING_LIMIT:
            self._turns.setdefault(identity, job_id)
        text = f"searches of {USERS_LIMIT} users are under way, the most at a time; {len(self._turns):,} users wait for a turn"
        return AwaitedSearch("SEARCH_QUEUED", text)

    def _tell(self, jobs: set[JobId]) -> None:
        self.found |= jobs
        if self._turns:
            self.found.add(self._turns.pop(next(iter(self._turns))))

    def _discovery(self) -> Discovery:
        settings = self._settings
        return Discovery(
            self._sources or self._web(),
            pace=DiscoveryLimits(
                server_seconds=settings.server_seconds,
                whole_seconds=settings.whole_seconds,
                patience_seconds=settings.patience_seconds,
                servers_at_once=settings.servers_at_once,
                slow_servers_at_once=SLOW_AT_ONCE,
            ),
            bounds=Bounds(servers=SERVERS_LIMIT, hosts=tuple(settings.hosts), elements=ELEMENTS_LIMIT),
            terms=CacheLifetimes(fresh_seconds=settings.fresh_seconds / 2, elements=ELEMENTS_LIMIT),
        )

    def _web(self) -> dict[str, Source]:
        from wms.discovery.http import Web

        settings = self._settings
        web = Web(
            WebIdentity(proxy_file=settings.proxy_file, authorities=settings.authorities),
            size_limit=settings.document_bytes,
            readers=self._reader,
            read_at_once=1,
        )
        return {"https": web, "http": web}

    @property
    def seconds(self) -> float:
        """The number of seconds after which every search through index servers is over.

        A job that waits for one, or for its turn to search, is examined again then, if not earlier.
        """
        return self._settings.whole_seconds + 1.0

    @property
    def searches(self) -> int:
        """The number of searches of all users that have not ended."""
        return sum(each.under_way for each in self._users.values())

    async def close(self) -> None:
        """Cancel all searches, close their connections, and end the thread that reads documents."""
        for each in self._users.values():
            await each.close()
        self._reader.shutdown(wait=False, cancel_futures=True)
