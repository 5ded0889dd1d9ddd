"""The search through a hierarchy of indexes: decides which server to ask next, asks none twice, and orders the report.

Answers come in any order. So each server has a place: the position of its address in its index, after the place of that index. If several
indexes name a server, the smallest place counts. The report is ordered by places, so the same answers always give the same report.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from wms.discovery.address import Address, Kind, refusal
from wms.discovery.server_answers import FoundElement, ServerAnswer

Outcome: TypeAlias = Literal["answered", "remembered", "stale", "late", "failed", "resting", "refused"]
UNHEARD: frozenset[Outcome] = frozenset({"late", "failed", "resting"})


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How many servers, levels and computing elements one search may reach. An index may be hostile or lead in circles."""

    servers: int = 1_000
    depth: int = 8
    """How many levels of indexes are followed. The roots are at level 1."""
    elements: int = 100_000
    hosts: tuple[str, ...] = ()
    """Patterns of the hosts that may be asked in addition to the roots; empty: all hosts."""


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one server in a search, and how many computing elements the server described."""

    url: str
    kind: Kind
    outcome: Outcome
    why: str = ""
    by: str = ""
    """The URL of the index that named the server; empty for a server with which the search began."""
    age_seconds: float = 0.0
    elements: int = 0


class ElementSighting(msgspec.Struct, frozen=True, kw_only=True):
    """A computing element, and the key of the server that described it."""

    element: FoundElement
    by: str
    """The key of the address of the server that described the computing element."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a search: the computing elements, and the outcome of each server."""

    sightings: tuple[ElementSighting, ...] = ()
    visits: tuple[Visit, ...] = ()
    doubles: tuple[ElementSighting, ...] = ()
    """Computing elements that were found again: their site and name are those of an element in `sightings`."""

    @property
    def elements(self) -> tuple[FoundElement, ...]:
        """The computing elements that were found, each once, in the order of the report."""
        return tuple(each.element for each in self.sightings)

    @property
    def unheard(self) -> tuple[Visit, ...]:
        """The servers without an answer: they were late, failed, or were not asked because they had failed shortly before."""
        return tuple(each for each in self.visits if each.outcome in UNHEARD)


class _Server(msgspec.Struct):
    address: Address
    by: Address | None
    place: tuple[int, ...]
    outcome: Outcome = "late"
    why: str = ""
    age: float = 0.0
    told: ServerAnswer = ServerAnswer()


class Search:
    """One search through a hierarchy of servers. The caller asks the servers, and calls `answered` or `failed` for each.

    A server for which neither was called counts as late in the report.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._servers: dict[str, _Server] = {}
        self._nowhere: list[tuple[tuple[int, ...], Visit]] = []
        self._elements = 0

    def begin(self, roots: Sequence[Address]) -> list[Address]:
        """Start at these root servers; return those that are to be asked, each once."""
        return self._led(roots, None, ())

    def answered(
        self, address: Address, told: ServerAnswer, outcome: Outcome, age_seconds: float = 0.0
    ) -> list[Address]:
        """Store the answer of a server, and return the further servers that are to be asked.

        `outcome` says whether the answer is new, remembered or stale. `age_seconds` is the age of the answer.
        """
        server = self._servers[address.key]
        server.outcome, server.age = outcome, age_seconds
        server.told = self._bounded(server, told)
        for number, (url, why) in enumerate(told.passed_over):
            place = (*server.place, len(told.leads) + number)
            self._refuse(place, Visit(url=url, kind="index", outcome="refused", why=why, by=address.url))
        return self._led(told.leads, address, server.place)

    def _bounded(self, server: _Server, told: ServerAnswer) -> ServerAnswer:
        """Return the answer; without its elements if they bring the search over its limit on elements."""
        self._elements += len(told.elements)
        if self._elements <= self._bounds.elements:
            return told
        server.why = f"over {self._bounds.elements:,} elements"
        return ServerAnswer(leads=told.leads)

    def failed(self, address: Address, outcome: Outcome, why: str) -> None:
        """Store that a server gave no answer, with the outcome ("failed" or "resting") and the reason."""
        server = self._servers[address.key]
        server.outcome, server.why = outcome, why

    def _led(self, leads: Sequence[Address], by: Address | None, place: tuple[int, ...]) -> list[Address]:
        found = []
        for number, each in enumerate(leads):
            if self._is_full():
                break
            if lead := self._lead(each, by, (*place, number)):
                found.append(lead)
        return found

    def _is_full(self) -> bool:
        """Return whether the search has reached its limits on servers and on refused addresses. An index may name thousands of them."""
        most = self._bounds.servers
        return len(self._servers) >= most and len(self._nowhere) >= most

    def _lead(self, lead: Address, by: Address | None, place: tuple[int, ...]) -> Address | None:
        """Return the address if it may be asked and is new in this search; else None. Store a new server, or the refusal of its address."""
        known = self._servers.get(lead.key)
        if known is not None:
            if place < known.place:
                known.place, known.by = place, by
            return None
        if why := self._why_not(lead, by, place):
            by_url = by.url if by else ""
            self._refuse(place, Visit(url=lead.url, kind=lead.kind, outcome="refused", why=why, by=by_url))
            return None
        self._servers[lead.key] = _Server(lead, by, place)
        return lead

    def _refuse(self, place: tuple[int, ...], visit: Visit) -> None:
        if len(self._nowhere) < self._bounds.servers:
            self._nowhere.append((place, visit))

    def _why_not(self, lead: Address, by: Address | None, place: tuple[int, ...]) -> str:
        if why := refusal(lead, by, self._bounds.hosts):
            return why
        if len(place) > self._bounds.depth + (lead.kind == "element"):
            return f"over {self._bounds.depth} indexes in each other"
        if len(self._servers) >= self._bounds.servers:
            return f"over {self._bounds.servers:,} servers"
        return ""

    def report(self) -> Found:
        """Return the computing elements found so far and the outcome of each server, both in the order of the servers' places."""
        servers = sorted(self._servers.items(), key=lambda each: each[1].place)
        seen: dict[tuple[str, str], ElementSighting] = {}
        doubles: list[ElementSighting] = []
        for key, server in servers:
            for element in server.told.elements:
                sighting = ElementSighting(element=element, by=key)
                first = seen.setdefault((element.site, element.name), sighting)
                if first is not sighting:
                    doubles.append(sighting)
        visits = [*((server.place, _visit(server)) for _, server in servers), *self._nowhere]
        return Found(
            sightings=tuple(seen.values()),
            visits=tuple(visit for _, visit in sorted(visits, key=lambda each: each[0])),
            doubles=tuple(doubles),
        )


def _visit(server: _Server) -> Visit:
    return Visit(
        url=server.address.url,
        kind=server.address.kind,
        outcome=server.outcome,
        why=server.why,
        by=server.by.url if server.by else "",
        age_seconds=server.age,
        elements=len(server.told.elements),
    )
