"""CE endpoints: the dispatcher of each computing element, its requests for pilots, and a circuit breaker.

An endpoint that does not answer, or whose pilots die unseen, is not used for a pause that grows with every failure.
Meanwhile pilots are planned for the next best elements.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple, Protocol, TypeVar

import msgspec
import structlog
from msgspec.structs import replace

from services.pilot_submitter.script_answers import ScriptAnswers
from wms.backoff import delays
from wms.dispatch.forwarding import DoorTerms
from wms.dispatch.mapping import HostMapping
from wms.dispatch.mapping_script import ScriptedMapping
from wms.dispatch.port import Dispatcher, Request
from wms.errors import Unavailable
from wms.ids import CeId
from wms.site import ComputingElement

log = structlog.get_logger()

FIRST_PAUSE, LONGEST_PAUSE = 2.0, 600.0
ANSWER_SECONDS = 60.0
"""An element that takes longer to answer counts as not answering."""


T = TypeVar("T")


class SubmittedPilot(Protocol):
    """What is known of a pilot that was sent through an endpoint."""

    @property
    def site(self) -> str: ...  # noqa: D102 - as its name says

    @property
    def ce(self) -> str: ...  # noqa: D102

    @property
    def dispatcher(self) -> str: ...  # noqa: D102


S = TypeVar("S", bound=SubmittedPilot)


class CircuitBreaker:
    """Whether something may be tried again; `clock` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float], first: float = FIRST_PAUSE) -> None:
        self._clock = clock
        self._first = first
        self._not_before = 0.0
        self._pauses: Iterator[float] | None = None

    @property
    def over(self) -> bool:
        """Whether the last pause is over."""
        return self._clock() >= self._not_before

    @property
    def seconds_left(self) -> float:
        """Seconds until the pause ends."""
        return max(0.0, self._not_before - self._clock())

    def failed(self) -> float:
        """Begin a pause longer than the last; return its seconds. Failures within a pause count once."""
        if self.over:
            self._pauses = self._pauses or delays(self._first, LONGEST_PAUSE, 2.0, random.Random().random)
            self._not_before = self._clock() + next(self._pauses)
        return self._not_before - self._clock()

    def succeeded(self) -> None:
        """Forget all failures."""
        self._pauses, self._not_before = None, 0.0


class EndpointTerms(NamedTuple):
    """What pilots ask for at an endpoint, and how often they are followed; 0 and "" ask for nothing."""

    kind: str = "local"
    lifetime_seconds: float = 0.0
    """Seconds after which a pilot takes no more jobs; 0: as all pilots."""
    sandboxes_url: str = ""
    asks: DoorTerms | None = None
    """What a batch system is asked for; None: it is none, or gets only the request of the ad."""
    software: str = ""
    follow_every_seconds: float = 0.0


class CeEndpoint:
    """The way to one computing element."""

    def __init__(
        self,
        place: CeId,
        dispatcher: Dispatcher,
        clock: Callable[[], float],
        terms: EndpointTerms,
        script: ScriptAnswers | None = None,
    ) -> None:
        """Raises Rejected for a malformed rule for hosts."""
        self.place = place
        self.dispatcher = dispatcher
        self.terms = terms
        self.script = script
        """The answers of the site's mapping script, if `terms` name one."""
        self.mapping = terms.asks.mapping(script.answers if script else None) if terms.asks else None
        """How hosts are asked for; None: they cannot be."""
        self._clock = clock
        self._followed_at = float("-inf")
        self._reach = CircuitBreaker(clock)
        self._trust = CircuitBreaker(clock)
        self.why_shut = ""
        """Why its last pause began."""

    def asks_as_json(self) -> str:
        """Return what is asked for, with the latest answers of its mapping script, for explanations."""
        asks = self.terms.asks
        if asks is not None and self.script is not None:
            asks = replace(asks, answers=self.script.latest())
        return msgspec.json.encode(asks).decode()

    @property
    def pause_seconds(self) -> float:
        """Seconds until pilots are sent again."""
        return max(self._reach.seconds_left, self._trust.seconds_left)

    @property
    def is_local(self) -> bool:
        """Whether pilots are processes of this machine."""
        return self.terms.kind == "local"

    @property
    def open(self) -> bool:
        """Whether pilots may be sent."""
        return self.reachable and self._trust.over

    @property
    def reachable(self) -> bool:
        """Whether its last question was answered, or it may be asked again."""
        return self._reach.over

    @property
    def due(self) -> bool:
        """Whether its pilots are to be followed now."""
        return self.reachable and self._clock() >= self._followed_at + self.terms.follow_every_seconds

    def request(self, element: ComputingElement) -> Request:
        """Return a pilot's request: the resources of the ad, for the pilot's life."""
        if self.terms.asks is None:
            return Request(cores=element.cores_per_pilot, memory_mb=element.memory_mb)
        return self.terms.asks.usual(element)

    def reached(self) -> None:
        """Note that it answered."""
        self._reach.succeeded()

    def followed(self) -> None:
        """Note that its pilots were followed."""
        self._followed_at = self._clock()
        self.reached()

    def unreachable(self, why: str) -> None:
        """Note that it did not answer."""
        self._pause(self._reach, "element unreachable", why)

    def lost(self, why: str) -> None:
        """Note that pilots were refused, or died unseen."""
        self._pause(self._trust, "pilots lost", why)

    def _pause(self, patience: CircuitBreaker, what: str, why: str) -> None:
        if patience.over:
            site, ce = self.place
            self.why_shut = f"{what}: {why}"
            log.warning(what, site=site, ce=ce, reason=why, pause_seconds=round(patience.failed(), 1))

    async def ask(self, asked: Awaitable[T]) -> T | None:
        """Return its dispatcher's answer; None if it does not answer, which begins a pause."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await asked
        except (Unavailable, TimeoutError) as error:
            self.unreachable(str(error) or f"no answer within {ANSWER_SECONDS:g} s")
            return None

    def served(self) -> None:
        """Note that a pilot was seen at work."""
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
        """`local_sites` are the names, or patterns, of sites whose local elements are this machine."""
        self._local = local
        self._local_sites = tuple(local_sites)
        self.clock = clock
        self._doors = {door.place: door for door in doors}

    def asking(self) -> list[tuple[CeEndpoint, HostMapping]]:
        """Return the endpoints where hosts can be asked for, with how."""
        return [(door, door.mapping) for door in self._doors.values() if door.mapping]

    def script_revisions(self) -> tuple[int, ...]:
        """Return how many answers each mapping script has given."""
        return tuple(door.script.revision for door in self._doors.values() if door.script)

    async def ask_scripts(self) -> bool:
        """Let each mapping script answer one waiting question; tell whether more wait."""
        scripts = [(door.script, door.mapping) for door in self._doors.values()]
        asked = [
            script.answer_next(mapping)
            for script, mapping in scripts
            if script is not None and isinstance(mapping, ScriptedMapping)
        ]
        return any(await asyncio.gather(*asked))

    def shut(self) -> list[CeEndpoint]:
        """Return the endpoints that send no pilots now."""
        return [door for door in self._doors.values() if not door.open]

    def all(self) -> list[CeEndpoint]:
        """Return all endpoints that are known by now."""
        return list(self._doors.values())

    def has(self, place: CeId) -> bool:
        """Tell whether an element has an endpoint."""
        return place in self._doors

    def to(self, site: str, ce: str, kind: str) -> CeEndpoint | None:
        """Return the endpoint of an element for a kind of dispatcher; None if it has none of that kind."""
        place = CeId(site, ce)
        door = self._doors.get(place)
        if door is None and kind == "local" and self._is_here(site):
            door = self._doors[place] = CeEndpoint(place, self._local, self.clock, EndpointTerms())
        return door if door is not None and door.terms.kind == kind else None

    def _is_here(self, site: str) -> bool:
        return any(fnmatchcase(site, each) for each in self._local_sites)

    def behind(self, pilots: Iterable[S]) -> dict[CeEndpoint, list[S]]:
        """Return the pilots by their endpoints, as far as these still exist."""
        found: dict[CeEndpoint, list[S]] = {}
        for each in pilots:
            if (door := self.to(each.site, each.ce, each.dispatcher)) is not None:
                found.setdefault(door, []).append(each)
        return found
