"""Finds computing elements: queries a hierarchy of servers in parallel, with one time limit for each server and one for the whole search.

The result has the answers that came in time. Servers without an answer by then are reported as late. Their queries continue, so the next
search has the answers. All callers share one query to a server at a time. A server with a fresh answer in memory is not asked again. An
older answer is used while the server is asked. A server that failed is not asked for a while.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Literal, NamedTuple, Self

import msgspec

from wms.discovery.address import Address
from wms.discovery.answer_cache import AnswerCache, CacheLifetimes, RememberedAnswer
from wms.discovery.parallelism import Parallelism
from wms.discovery.port import Source
from wms.discovery.search import Bounds, Found, Search
from wms.discovery.server_answers import ServerAnswer
from wms.errors import Rejected, Unavailable


class DiscoveryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a search for elements may take, and how many servers are asked at a time."""

    server_seconds: float = 15.0
    """How many seconds one server may take to answer."""
    whole_seconds: float = 20.0
    """How many seconds a whole search may take, however many servers there are."""
    patience_seconds: float = 0.0
    """After how many seconds of a search the remembered answers of servers are used in place of answers that have not come."""
    servers_at_once: int = 8
    slow_servers_at_once: int = 256
    """How many further servers may be asked at a time, each of which has taken longer than `slow_after_seconds` to answer."""
    slow_after_seconds: float = 0.25


class _Awaited(NamedTuple):
    address: Address
    stand_in: RememberedAnswer | None
    flight: "asyncio.Task[None]"


class Discovery:
    """Finds computing elements, and remembers the answers of servers. `sources` has the client for each URL scheme, such as https.

    `clock` returns monotonic seconds, `rng` numbers in [0, 1). Use this object in `async with`, or call `close` at the end.
    """

    def __init__(
        self,
        sources: Mapping[str, Source],
        *,
        pace: DiscoveryLimits | None = None,
        bounds: Bounds | None = None,
        terms: CacheLifetimes | None = None,
        clock: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] | None = None,
    ) -> None:
        self._sources = sources
        self._pace = pace or DiscoveryLimits()
        self._bounds = bounds or Bounds()
        self._memory = AnswerCache(terms or CacheLifetimes(), rng or random.Random().random)
        self._clock = clock
        self._lanes = Parallelism(
            self._pace.servers_at_once, self._pace.slow_servers_at_once, self._pace.slow_after_seconds
        )
        self._flights: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        """Return this object, for `async with`."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cancel all questions to servers that are under way, and wait until they have ended."""
        await self.close()

    async def close(self) -> None:
        """Cancel all questions to servers that are under way, and wait until they have ended."""
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)

    async def find(self, roots: Sequence[Address]) -> Found:
        """Search the hierarchy of servers below `roots`; return the computing elements found and the outcome of each server.

        The search ends after at most `whole_seconds` of its limits, and returns what was found by then.
        """
        return await _Finding(self, Search(self._bounds), self._pace).run(roots)

    def recall(self, key: str) -> RememberedAnswer:
        """Return what is remembered of the server with this address key: its last answer, or why it failed. The state says whether to ask it now."""
        return self._memory.recall(key, self._clock())

    def flight(self, address: Address) -> "asyncio.Task[None]":
        """Return the task that asks this server; start one if none runs.

        The task stores the answer or the failure in the memory, and returns nothing.
        """
        flight = self._flights.get(address.key)
        if flight is None:
            flight = self._flights[address.key] = asyncio.create_task(self._ask(address))
            flight.add_done_callback(lambda _: self._flights.pop(address.key, None))
        return flight

    async def _ask(self, address: Address) -> None:
        try:
            async with self._lanes.place(), asyncio.timeout(self._pace.server_seconds):
                told = await self._source(address).ask(address)
        except (Rejected, Unavailable) as error:
            self._memory.failed(address.key, error.message, self._clock())
        except TimeoutError:
            why = f"no answer within {self._pace.server_seconds:g} s"
            self._memory.failed(address.key, why, self._clock())
        else:
            self._memory.learned(address.key, told, self._clock())

    def _source(self, address: Address) -> Source:
        source = self._sources.get(address.scheme)
        if source is None:
            raise Rejected("ADDRESS_INVALID", f"{address.scheme}: nothing here speaks that")
        return source


class _Finding:
    """One search for elements, on behalf of one caller."""

    def __init__(self, discovery: Discovery, walk: Search, pace: DiscoveryLimits) -> None:
        self._discovery = discovery
        self._walk = walk
        self._pace = pace
        self._awaited: dict[str, _Awaited] = {}
        self._patient = True

    async def run(self, roots: Sequence[Address]) -> Found:
        loop = asyncio.get_running_loop()
        begin = loop.time()
        self._visit(self._walk.begin(roots))
        while self._awaited:
            until = begin + (self._pace.patience_seconds if self._patient else self._pace.whole_seconds)
            flights = {each.flight for each in self._awaited.values()}
            done, _ = await asyncio.wait(
                flights, timeout=max(0.0, until - loop.time()), return_when=asyncio.FIRST_COMPLETED
            )
            if done:
                self._take(done)
            elif self._patient:
                self._lose_patience()
            else:
                break
        self._lose_patience()
        return self._walk.report()

    def _visit(self, addresses: Sequence[Address]) -> None:
        """Use the remembered answers of these servers, and of the servers that those answers name.

        Start a query to each server without a usable answer.
        """
        left = deque(addresses)
        while left:
            address = left.popleft()
            known = self._discovery.recall(address.key)
            match known.state:
                case "fresh":
                    left += self._answer(address, known, "remembered")
                case "resting":
                    self._walk.failed(address, "resting", known.why)
                case "stale" if not self._patient:
                    self._discovery.flight(address)
                    left += self._answer(address, known, "stale")
                case _:
                    stand_in = known if known.state == "stale" else None
                    self._awaited[address.key] = _Awaited(address, stand_in, self._discovery.flight(address))

    def _answer(
        self, address: Address, known: RememberedAnswer, outcome: Literal["answered", "remembered", "stale"]
    ) -> list[Address]:
        return self._walk.answered(address, known.told or ServerAnswer(), outcome, known.age_seconds)

    def _take(self, done: set["asyncio.Task[None]"]) -> None:
        """Use the answers of the servers whose queries have ended."""
        for each in [each for each in self._awaited.values() if each.flight in done]:
            del self._awaited[each.address.key]
            each.flight.result()
            known = self._discovery.recall(each.address.key)
            if known.told is not None:
                self._visit(self._answer(each.address, known, "answered"))
            else:
                self._walk.failed(each.address, "failed", known.why)

    def _lose_patience(self) -> None:
        """Use remembered answers for servers that have not answered yet, now and for the rest of the search."""
        self._patient = False
        for each in [each for each in self._awaited.values() if each.stand_in]:
            del self._awaited[each.address.key]
            if each.stand_in:
                self._visit(self._answer(each.address, each.stand_in, "stale"))
