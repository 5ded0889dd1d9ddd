"""CE endpoints: by which dispatcher each computing element is reached, what its pilots request, and circuit breakers.

An endpoint that does not answer, or whose pilots die before they report, is not used for a pause that grows with every failure.
Meanwhile pilots are planned for the next best elements.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple, Protocol, TypeVar

import msgspec
import structlog
from msgspec.structs import replace

from services.pilot_submitter.script_answers import ScriptAnswers
from wms.backoff import delays
from wms.db.pilot import Link
from wms.dispatch.forwarding import DoorTerms
from wms.dispatch.mapping import HostMapping
from wms.dispatch.mapping_script import ScriptedMapping
from wms.dispatch.port import Dispatcher, Request
from wms.errors import Unavailable
from wms.ids import CeId
from wms.site import ComputingElement
from wms.transfer.movers import TransferSettings

log = structlog.get_logger()

FIRST_PAUSE, LONGEST_PAUSE = 2.0, 600.0
ANSWER_SECONDS = 60.0
"""An element that takes longer to answer, in seconds, counts as unreachable."""


T = TypeVar("T")


class SubmittedPilot(Protocol):
    """A pilot that was sent through an endpoint: its site, its computing element and the kind of its dispatcher."""

    @property
    def site(self) -> str: ...  # noqa: D102 - as its name says

    @property
    def ce(self) -> str: ...  # noqa: D102

    @property
    def dispatcher(self) -> str: ...  # noqa: D102


S = TypeVar("S", bound=SubmittedPilot)


class CircuitBreaker:
    """Pauses after failures, longer each time until a success.

    `clock` returns monotonic seconds, `first` is the first pause in seconds.
    """

    def __init__(self, clock: Callable[[], float], first: float = FIRST_PAUSE) -> None:
        self._clock = clock
        self._first = first
        self._not_before = 0.0
        self._pauses: Iterator[float] | None = None

    @property
    def over(self) -> bool:
        """Whether no pause lasts at present, so that another try is allowed."""
        return self._clock() >= self._not_before

    @property
    def seconds_left(self) -> float:
        """Seconds until the pause ends; 0 without one."""
        return max(0.0, self._not_before - self._clock())

    def failed(self) -> float:
        """Begin a pause longer than the last one, and return its seconds. During a pause, only return the seconds left."""
        if self.over:
            self._pauses = self._pauses or delays(self._first, LONGEST_PAUSE, 2.0, random.Random().random)
            self._not_before = self._clock() + next(self._pauses)
        return self._not_before - self._clock()

    def succeeded(self) -> None:
        """End the pause, and forget all failures."""
        self._pauses, self._not_before = None, 0.0


class EndpointTerms(NamedTuple):
    """What pilots request at an endpoint, and how often, in seconds, their states are read.

    `kind` is the kind of dispatcher, and `software` the directory on the nodes that lists their runtime environments. A value of
    0 or "" requests nothing.
    """

    kind: str = "local"
    lifetime_seconds: float = 0.0
    """Seconds after which a pilot takes no more jobs; 0: as configured for all pilots."""
    sandboxes_url: str = ""
    sandboxes_authorities: str = ""
    asks: DoorTerms | None = None
    """How requests are translated for the batch system; None: there is none, or only the resources of the ad are requested."""
    software: str = ""
    transfers: TransferSettings | None = None
    """The site's settings for files by URL; None: as configured for all elements."""
    follow_every_seconds: float = 0.0
    link: Link | Literal[""] = ""
    """How pilots there reach the services; "": as configured for all pilots."""


class CeEndpoint:
    """How one computing element is reached: its dispatcher, its terms, and a circuit breaker each for the element and its pilots."""

    def __init__(
        self,
        place: CeId,
        dispatcher: Dispatcher,
        clock: Callable[[], float],
        terms: EndpointTerms,
        script: ScriptAnswers | None = None,
    ) -> None:
        """Build an endpoint for the computing element `place`; `clock` returns monotonic seconds.

        Raise Rejected if `terms` have a malformed rule by which hosts are requested.
        """
        self.place = place
        self.dispatcher = dispatcher
        self.terms = terms
        self.script = script
        """The answers of the site's mapping script (from job requirements to batch system options); None: it has none."""
        self.mapping = terms.asks.mapping(script.answers if script else None) if terms.asks else None
        """How requirements on hosts become requests to the batch system; None: hosts cannot be requested."""
        self._clock = clock
        self._followed_at = float("-inf")
        self._reach = CircuitBreaker(clock)
        self._trust = CircuitBreaker(clock)
        self.why_shut = ""
        """The reason of the endpoint's last pause; empty before the first."""

    def asks_as_json(self) -> str:
        """Return how hosts are requested, as JSON, with the latest answers of the mapping script: for explanations by other services."""
        asks = self.terms.asks
        if asks is not None and self.script is not None:
            asks = replace(asks, answers=self.script.latest())
        return msgspec.json.encode(asks).decode()

    @property
    def pause_seconds(self) -> float:
        """Seconds until pilots may be sent again; 0 if they may be sent now."""
        return max(self._reach.seconds_left, self._trust.seconds_left)

    @property
    def is_local(self) -> bool:
        """Whether the element's pilots are processes of this machine."""
        return self.terms.kind == "local"

    @property
    def open(self) -> bool:
        """Whether pilots may be sent now: no pause lasts, neither for the element nor for lost pilots."""
        return self.reachable and self._trust.over

    @property
    def reachable(self) -> bool:
        """Whether the element may be asked: it answered the last request, or the pause after that is over."""
        return self._reach.over

    @property
    def due(self) -> bool:
        """Whether the states of the element's pilots are to be read now."""
        return self.reachable and self._clock() >= self._followed_at + self.terms.follow_every_seconds

    def request(self, element: ComputingElement) -> Request:
        """Return what a pilot without special requests asks the batch system for: the resources of the element's ad."""
        if self.terms.asks is None:
            return Request(cores=element.cores_per_pilot, memory_mb=element.memory_mb)
        return self.terms.asks.usual(element)

    def reached(self) -> None:
        """Record that the element answered, which ends the pause for an unreachable one."""
        self._reach.succeeded()

    def followed(self) -> None:
        """Record that the states of the element's pilots were read just now."""
        self._followed_at = self._clock()
        self.reached()

    def unreachable(self, why: str) -> None:
        """Record that the element did not answer, which begins a pause; `why` is a text for operators."""
        self._pause(self._reach, "element unreachable", why)

    def lost(self, why: str) -> None:
        """Record that pilots were refused, or died before they reported, which begins a pause; `why` is a text for operators."""
        self._pause(self._trust, "pilots lost", why)

    def _pause(self, patience: CircuitBreaker, what: str, why: str) -> None:
        if patience.over:
            site, ce = self.place
            self.why_shut = f"{what}: {why}"
            log.warning(what, site=site, ce=ce, reason=why, pause_seconds=round(patience.failed(), 1))

    async def ask(self, asked: Awaitable[T]) -> T | None:
        """Await a call of the dispatcher and return its result; None if the element does not answer in time, which begins a pause."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await asked
        except (Unavailable, TimeoutError) as error:
            self.unreachable(str(error) or f"no answer within {ANSWER_SECONDS:g} s")
            return None

    def served(self) -> None:
        """Record that a pilot of the element has reported, which ends a pause for lost pilots."""
        self._trust.succeeded()


class CeEndpoints:
    """All endpoints: the configured ones, and one on this machine for each local element of the configured sites.

    An ad's dispatcher only chooses among them: no ad opens an endpoint.
    """

    def __init__(
        self,
        local: Dispatcher,
        clock: Callable[[], float],
        doors: Iterable[CeEndpoint] = (),
        *,
        local_sites: Sequence[str] = (),
    ) -> None:
        """Build the set of endpoints; `doors` are the configured ones.

        `local` is the dispatcher of this machine, and `local_sites` are names or patterns of sites whose local elements it
        serves.
        """
        self._local = local
        self._local_sites = tuple(local_sites)
        self.clock = clock
        self._doors = {door.place: door for door in doors}

    def asking(self) -> list[tuple[CeEndpoint, HostMapping]]:
        """Return the endpoints where pilots can request certain hosts, each with its mapping of requirements to requests."""
        return [(door, door.mapping) for door in self._doors.values() if door.mapping]

    def script_revisions(self) -> tuple[int, ...]:
        """Return a number for each mapping script of a site; it grows whenever the script has given another answer."""
        return tuple(door.script.revision for door in self._doors.values() if door.script)

    async def ask_scripts(self) -> bool:
        """Run each site's mapping script for one waiting question; return whether more questions wait."""
        scripts = [(door.script, door.mapping) for door in self._doors.values()]
        asked = [
            script.answer_next(mapping)
            for script, mapping in scripts
            if script is not None and isinstance(mapping, ScriptedMapping)
        ]
        return any(await asyncio.gather(*asked))

    def shut(self) -> list[CeEndpoint]:
        """Return the endpoints to which no pilots may be sent now."""
        return [door for door in self._doors.values() if not door.open]

    def all(self) -> list[CeEndpoint]:
        """Return the configured endpoints, and those of local elements that `to` was asked for."""
        return list(self._doors.values())

    def has(self, place: CeId) -> bool:
        """Return whether a computing element has a configured endpoint, or a local one that `to` was asked for."""
        return place in self._doors

    def to(self, site: str, ce: str, kind: str) -> CeEndpoint | None:
        """Return the endpoint of a computing element for a kind of dispatcher; None if it has none of that kind."""
        place = CeId(site, ce)
        door = self._doors.get(place)
        if door is None and kind == "local" and self._is_here(site):
            door = self._doors[place] = CeEndpoint(place, self._local, self.clock, EndpointTerms())
        return door if door is not None and door.terms.kind == kind else None

    def _is_here(self, site: str) -> bool:
        return any(fnmatchcase(site, each) for each in self._local_sites)

    def behind(self, pilots: Iterable[S]) -> dict[CeEndpoint, list[S]]:
        """Return the pilots by the endpoint through which they were sent; those whose endpoint no longer exists are left out."""
        found: dict[CeEndpoint, list[S]] = {}
        for each in pilots:
            if (door := self.to(each.site, each.ce, each.dispatcher)) is not None:
                found.setdefault(door, []).append(each)
        return found
