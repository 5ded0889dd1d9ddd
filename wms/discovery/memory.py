"""Remembers recent answers of servers, and servers that failed, which are left alone for a while. `now` is in monotonic seconds."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from wms.backoff import delays
from wms.discovery.server_answers import ServerAnswer

State: TypeAlias = Literal["unknown", "fresh", "stale", "resting"]


class CacheLifetimes(msgspec.Struct, frozen=True, kw_only=True):
    """How long answers and failures of servers are remembered, and how many."""

    fresh_seconds: float = 30.0
    """For how many seconds an answer is fresh, so that the server is not asked again. ARC's data are about as old."""
    keep_seconds: float = 600.0
    """For how many seconds an older answer may be used while a new one is awaited."""
    rest_seconds: float = 30.0
    """For how many seconds a server that failed is not asked. They double with each further failure."""
    rest_limit_seconds: float = 900.0
    servers: int = 10_000
    """How many servers are remembered. The one that was not used for longest is forgotten first."""
    elements: int = 200_000
    """How many computing elements are remembered, of all servers together."""


class Recalled(NamedTuple):
    """What is remembered of a server: its last answer and the age of that, or why it failed."""

    state: State
    told: ServerAnswer | None = None
    age_seconds: float = 0.0
    why: str = ""
    """Why the server failed last; empty if it answered."""


class _Server(msgspec.Struct):
    told: ServerAnswer | None = None
    told_at: float = 0.0
    why: str = ""
    rests_until: float = 0.0
    rests: Iterator[float] | None = None


class Memory:
    """What is remembered of servers, by the keys of their addresses. `rng` returns numbers in [0, 1)."""

    def __init__(self, terms: CacheLifetimes, rng: Callable[[], float]) -> None:
        self._terms = terms
        self._rng = rng
        self._servers: OrderedDict[str, _Server] = OrderedDict()
        self._elements = 0

    def recall(self, key: str, now: float) -> Recalled:
        """Return what is remembered of the server with this key.

        Its state is fresh (it need not be asked), stale (its answer is used until it answers again), resting (it failed and is not asked
        now) or unknown.
        """
        server = self._servers.get(key)
        if server is None:
            return Recalled("unknown")
        self._servers.move_to_end(key)
        age = now - server.told_at
        if server.rests is not None:
            return Recalled("resting" if now < server.rests_until else "unknown", why=server.why)
        if age < self._terms.fresh_seconds:
            return Recalled("fresh", server.told, age)
        return Recalled("stale", server.told, age) if age < self._terms.keep_seconds else Recalled("unknown")

    def learned(self, key: str, told: ServerAnswer, now: float) -> None:
        """Remember the answer of a server, and forget its failures."""
        self._keep(key, _Server(told=told, told_at=now))

    def failed(self, key: str, why: str, now: float) -> None:
        """Remember that a server failed and why, and forget its answer. It rests longer after each failure."""
        before = self._servers.get(key)
        rests = before.rests if before else None
        if rests is None:
            rests = delays(self._terms.rest_seconds, self._terms.rest_limit_seconds, 2.0, self._rng)
        self._keep(key, _Server(why=why, rests_until=now + next(rests), rests=rests))

    def _keep(self, key: str, server: _Server) -> None:
        self._elements += _size(server) - _size(self._servers.pop(key, None))
        self._servers[key] = server
        while len(self._servers) > self._terms.servers or self._elements > self._terms.elements:
            _, forgotten = self._servers.popitem(last=False)
            self._elements -= _size(forgotten)


def _size(server: _Server | None) -> int:
    return len(server.told.elements) if server and server.told else 0
