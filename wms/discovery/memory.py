"""What servers told of late, and which of them are left alone for a while because they failed; `now` is in monotonic seconds."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from wms.backoff import delays
from wms.discovery.server_answers import ServerAnswer

State: TypeAlias = Literal["unknown", "fresh", "stale", "resting"]


class CacheLifetimes(msgspec.Struct, frozen=True, kw_only=True):
    """How long answers are good for, and how long failures are remembered."""

    fresh_seconds: float = 30.0
    """So long nobody is asked again: what ARC publishes is about as old anyway."""
    keep_seconds: float = 600.0
    """So long an answer stands in for one that is late."""
    rest_seconds: float = 30.0
    """One that failed is left alone so long, twice as long each time after."""
    rest_limit_seconds: float = 900.0
    servers: int = 10_000
    """Remembered at most; the longest unused is forgotten first."""
    elements: int = 200_000
    """Remembered at most, of all servers together."""


class Recalled(NamedTuple):
    """What is remembered of a server."""

    state: State
    told: ServerAnswer | None = None
    age_seconds: float = 0.0
    why: str = ""
    """Why it failed last."""


class _Server(msgspec.Struct):
    told: ServerAnswer | None = None
    told_at: float = 0.0
    why: str = ""
    rests_until: float = 0.0
    rests: Iterator[float] | None = None


class Memory:
    """What is remembered of servers, by their keys."""

    def __init__(self, terms: CacheLifetimes, rng: Callable[[], float]) -> None:
        self._terms = terms
        self._rng = rng
        self._servers: OrderedDict[str, _Server] = OrderedDict()
        self._elements = 0

    def recall(self, key: str, now: float) -> Recalled:
        """Return what is remembered.

        Fresh: need not be asked. Stale: what it told stands in until it answers. Resting: is not to be asked, for it failed.
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
        """Remember an answer; earlier failures are forgiven."""
        self._keep(key, _Server(told=told, told_at=now))

    def failed(self, key: str, why: str, now: float) -> None:
        """Remember a failure: what it told before is not believed any longer."""
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
