"""Remembers the recent answers of servers, and which servers failed. A failed server is not asked for a while. `now` is in monotonic seconds."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from wms.backoff import delays
from wms.discovery.server_answers import ServerAnswer

State: TypeAlias = Literal["unknown", "fresh", "stale", "resting"]


class CacheLifetimes(msgspec.Struct, frozen=True, kw_only=True):
    """How long the answers and failures of servers are remembered, and how many of them at most."""

    fresh_seconds: float = 30.0
    """For how many seconds after an answer its server is not asked again. ARC updates its own data about as often."""
    keep_seconds: float = 600.0
    """Up to which age, in seconds, an answer may be used while the server is asked again."""
    rest_seconds: float = 30.0
    """For how many seconds a server is not asked after a failure. The time doubles with each further failure, up to `rest_limit_seconds`."""
    rest_limit_seconds: float = 900.0
    servers: int = 10_000
    """How many servers are remembered at most. The least recently used server is forgotten first."""
    elements: int = 200_000
    """How many computing elements the remembered answers of all servers may have together."""


class RememberedAnswer(NamedTuple):
    """The cached entry of one server: its last answer and the age of that answer, or why the server failed."""

    state: State
    told: ServerAnswer | None = None
    age_seconds: float = 0.0
    why: str = ""
    """Why the last query to the server failed; empty if it did not fail."""


class _Server(msgspec.Struct):
    told: ServerAnswer | None = None
    told_at: float = 0.0
    why: str = ""
    rests_until: float = 0.0
    rests: Iterator[float] | None = None


class AnswerCache:
    """A cache of the last answer or failure of each server, by the key of its address. `rng` returns numbers in [0, 1)."""

    def __init__(self, terms: CacheLifetimes, rng: Callable[[], float]) -> None:
        self._terms = terms
        self._rng = rng
        self._servers: OrderedDict[str, _Server] = OrderedDict()
        self._elements = 0

    def recall(self, key: str, now: float) -> RememberedAnswer:
        """Return the cached entry of the server with this key, and its state.

        A `fresh` answer is used without asking the server. A `stale` one may be used while the server is asked. A `resting` server failed and is
        not asked now. An `unknown` server must be asked.
        """
        server = self._servers.get(key)
        if server is None:
            return RememberedAnswer("unknown")
        self._servers.move_to_end(key)
        age = now - server.told_at
        if server.rests is not None:
            return RememberedAnswer("resting" if now < server.rests_until else "unknown", why=server.why)
        if age < self._terms.fresh_seconds:
            return RememberedAnswer("fresh", server.told, age)
        return (
            RememberedAnswer("stale", server.told, age)
            if age < self._terms.keep_seconds
            else RememberedAnswer("unknown")
        )

    def learned(self, key: str, told: ServerAnswer, now: float) -> None:
        """Remember the answer of a server, and forget its failures."""
        self._keep(key, _Server(told=told, told_at=now))

    def failed(self, key: str, why: str, now: float) -> None:
        """Remember that a server failed and why, and forget its answer. After each failure in a row the server is not asked for a longer time."""
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
