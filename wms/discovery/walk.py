"""The walk through a hierarchy of indexes: whom to ask next, each once, and in what order what was told is reported.

Answers come in any order. Every server has its place, the least way of numbers that leads to it from the roots, and what is
found is reported by places, so that equal answers are reported equally whoever was faster.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from wms.discovery.address import Address, Kind, refusal
from wms.discovery.server_answers import FoundElement, ServerAnswer

Outcome: TypeAlias = Literal["answered", "remembered", "stale", "late", "failed", "resting", "refused"]
UNHEARD: frozenset[Outcome] = frozenset({"late", "failed", "resting"})


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much one walk may find: an index may be hostile, or lead in circles."""

    servers: int = 1_000
    depth: int = 8
    """Of indexes in each other; the roots are at 1."""
    elements: int = 100_000
    hosts: tuple[str, ...] = ()
    """Patterns of hosts that may be asked besides the roots; empty: all."""


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one server."""

    url: str
    kind: Kind
    outcome: Outcome
    why: str = ""
    by: str = ""
    """The index that told of it; empty for a root."""
    age_seconds: float = 0.0
    elements: int = 0


class ElementSighting(msgspec.Struct, frozen=True, kw_only=True):
    """An element, and who told of it."""

    element: FoundElement
    by: str
    """The key of the server."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a walk found, and whom it did not hear."""

    sightings: tuple[ElementSighting, ...] = ()
    visits: tuple[Visit, ...] = ()
    doubles: tuple[ElementSighting, ...] = ()
    """Elements of a site and name that another had before."""

    @property
    def elements(self) -> tuple[FoundElement, ...]:
        """The elements."""
        return tuple(each.element for each in self.sightings)

    @property
    def unheard(self) -> tuple[Visit, ...]:
        """Those that were to be asked and told nothing: what they know is not known."""
        return tuple(each for each in self.visits if each.outcome in UNHEARD)


class _Server(msgspec.Struct):
    address: Address
    by: Address | None
    place: tuple[int, ...]
    outcome: Outcome = "late"
    why: str = ""
    age: float = 0.0
    told: ServerAnswer = ServerAnswer()


class Walk:
    """One walk. Whoever asks says what came of it; who has not answered when the walk is reported is late."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._servers: dict[str, _Server] = {}
        self._nowhere: list[tuple[tuple[int, ...], Visit]] = []
        self._elements = 0

    def begin(self, roots: Sequence[Address]) -> list[Address]:
        """Return whom to ask first."""
        return self._led(roots, None, ())

    def answered(
        self, address: Address, told: ServerAnswer, outcome: Outcome, age_seconds: float = 0.0
    ) -> list[Address]:
        """Take an answer; return who is to be asked now that was not before."""
        server = self._servers[address.key]
        server.outcome, server.age = outcome, age_seconds
        server.told = self._bounded(server, told)
        for number, (url, why) in enumerate(told.passed_over):
            place = (*server.place, len(told.leads) + number)
            self._refuse(place, Visit(url=url, kind="index", outcome="refused", why=why, by=address.url))
        return self._led(told.leads, address, server.place)

    def _bounded(self, server: _Server, told: ServerAnswer) -> ServerAnswer:
        """Return what is kept of an answer, should elements be too many by now."""
        self._elements += len(told.elements)
        if self._elements <= self._bounds.elements:
            return told
        server.why = f"over {self._bounds.elements:,} elements"
        return ServerAnswer(leads=told.leads)

    def failed(self, address: Address, outcome: Outcome, why: str) -> None:
        """Take a failure."""
        server = self._servers[address.key]
        server.outcome, server.why = outcome, why

    def _led(self, leads: Sequence[Address], by: Address | None, place: tuple[int, ...]) -> list[Address]:
        found = (self._lead(each, by, (*place, number)) for number, each in enumerate(leads))
        return [each for each in found if each]

    def _lead(self, lead: Address, by: Address | None, place: tuple[int, ...]) -> Address | None:
        """Return the address if it is to be asked."""
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
        """Return what is known by now."""
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
