"""CE endpoints: the dispatcher of each computing element, what pilots ask for there, and a circuit breaker.

An endpoint that cannot be reached, or whose pilots die without ever having been seen, is left alone for a while that grows
with every failure. Meanwhile pilots are planned for the next best elements.
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
"""An element that takes longer to take pilots, to tell of them or to end them is as good as away."""


T = TypeVar("T")


class SubmittedPilot(Protocol):
    """What is known of a pilot that went through a door."""

    @property
    def site(self) -> str: ...  # noqa: D102 - as its name says

    @property
    def ce(self) -> str: ...  # noqa: D102

    @property
    def dispatcher(self) -> str: ...  # noqa: D102


S = TypeVar("S", bound=SubmittedPilot)


class CircuitBreaker:
    """Whether something is worth another try yet; `clock` gives seconds that only grow."""

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
        """How long the pause lasts."""
        return max(0.0, self._not_before - self._clock())

    def failed(self) -> float:
        """Begin the next pause, longer than the last; return how long it is. Failures within a pause are one."""
        if self.over:
            self._pauses = self._pauses or delays(self._first, LONGEST_PAUSE, 2.0, random.Random().random)
            self._not_before = self._clock() + next(self._pauses)
        return self._not_before - self._clock()

    def succeeded(self) -> None:
        """Forget all failures."""
        self._pauses, self._not_before = None, 0.0


class EndpointTerms(NamedTuple):
    """What is asked for behind a door, and how often it is looked through; 0 and "" ask for nothing."""

    kind: str = "local"
    lifetime_seconds: float = 0.0
    """After so long a pilot takes no more jobs; 0: as all pilots."""
    sandboxes_url: str = ""
    asks: DoorTerms | None = None
    """What a batch system is asked for; None: there is none, or no more than the ad says that a pilot brings."""
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
        """Raises Rejected for a rule for hosts that is none."""
        self.place = place
        self.dispatcher = dispatcher
        self.terms = terms
        self.script = script
        """What the site's mapping script answers, if `terms` name one."""
        self.mapping = terms.asks.mapping(script.answers if script else None) if terms.asks else None
        """How hosts are asked for there; None: not at all."""
        self._clock = clock
        self._followed_at = float("-inf")
        self._reach = CircuitBreaker(clock)
        self._trust = CircuitBreaker(clock)
        self.why_shut = ""
        """What was the matter the last time that it was shut."""

    def asks_as_json(self) -> str:
        """Return what is asked for there, with what its mapping script answered last, for those who explain."""
        asks = self.terms.asks
        if asks is not None and self.script is not None:
            asks = replace(asks, answers=self.script.latest())
        return msgspec.json.encode(asks).decode()

    @property
    def pause_seconds(self) -> float:
        """For how long no pilots are sent."""
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
        """Whether it answered when it was last asked, or may be asked again."""
        return self._reach.over

    @property
    def due(self) -> bool:
        """Whether the pilots behind it are to be looked at again."""
        return self.reachable and self._clock() >= self._followed_at + self.terms.follow_every_seconds

    def request(self, element: ComputingElement) -> Request:
        """Return what a pilot asks for: what the ad says that it brings, for as long as it is to live."""
        if self.terms.asks is None:
            return Request(cores=element.cores_per_pilot, memory_mb=element.memory_mb)
        return self.terms.asks.usual(element)

    def reached(self) -> None:
        """Note that it answered."""
        self._reach.succeeded()

    def followed(self) -> None:
        """Note that its pilots were looked at."""
        self._followed_at = self._clock()
        self.reached()

    def unreachable(self, why: str) -> None:
        """Note that it did not answer."""
        self._pause(self._reach, "element unreachable", why)

    def lost(self, why: str) -> None:
        """Note that pilots were refused there, or died without ever having been seen."""
        self._pause(self._trust, "pilots lost", why)

    def _pause(self, patience: CircuitBreaker, what: str, why: str) -> None:
        if patience.over:
            site, ce = self.place
            self.why_shut = f"{what}: {why}"
            log.warning(what, site=site, ce=ce, reason=why, pause_seconds=round(patience.failed(), 1))

    async def ask(self, asked: Awaitable[T]) -> T | None:
        """Return what its dispatcher answers, None if it is away: then it is left alone for a while."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await asked
        except (Unavailable, TimeoutError) as error:
            self.unreachable(str(error) or f"no answer within {ANSWER_SECONDS:g} s")
            return None

    def served(self) -> None:
        """Note that a pilot there was seen at work."""
        self._trust.succeeded()


class CeEndpoints:
    """All doors: those configured, and one to this machine for each local element of the sites that it is configured for.

    What an ad says of its dispatcher only chooses among them: no ad opens a door.
    """

    def __init__(
        self,
        local: Dispatcher,
        clock: Callable[[], float],
        doors: Iterable[CeEndpoint] = (),
        *,
        local_sites: Sequence[str] = (),
    ) -> None:
        """`local_sites` are names, or patterns, of the sites whose local elements are this machine."""
        self._local = local
        self._local_sites = tuple(local_sites)
        self.clock = clock
        self._doors = {door.place: door for door in doors}

    def asking(self) -> list[tuple[CeEndpoint, HostMapping]]:
        """Return the doors where hosts can be asked for, with how."""
        return [(door, door.mapping) for door in self._doors.values() if door.mapping]

    def script_revisions(self) -> tuple[int, ...]:
        """Return how many answers each mapping script has given."""
        return tuple(door.script.revision for door in self._doors.values() if door.script)

    async def ask_scripts(self) -> bool:
        """Have each mapping script answer a question that is wanted; tell whether there are more."""
        scripts = [(door.script, door.mapping) for door in self._doors.values()]
        asked = [
            script.answer_next(mapping)
            for script, mapping in scripts
            if script is not None and isinstance(mapping, ScriptedMapping)
        ]
        return any(await asyncio.gather(*asked))

    def shut(self) -> list[CeEndpoint]:
        """Return the doors through which no pilots are sent just now."""
        return [door for door in self._doors.values() if not door.open]

    def all(self) -> list[CeEndpoint]:
        """Return all doors that are known by now."""
        return list(self._doors.values())

    def has(self, place: CeId) -> bool:
        """Tell whether there is a door to an element."""
        return place in self._doors

    def to(self, site: str, ce: str, kind: str) -> CeEndpoint | None:
        """Return the door to an element of a kind of dispatcher; None if there is none of that kind."""
        place = CeId(site, ce)
        door = self._doors.get(place)
        if door is None and kind == "local" and self._is_here(site):
            door = self._doors[place] = CeEndpoint(place, self._local, self.clock, EndpointTerms())
        return door if door is not None and door.terms.kind == kind else None

    def _is_here(self, site: str) -> bool:
        return any(fnmatchcase(site, each) for each in self._local_sites)

    def behind(self, pilots: Iterable[S]) -> dict[CeEndpoint, list[S]]:
        """Return the pilots by the doors that they went through, those of doors that are there still."""
        found: dict[CeEndpoint, list[S]] = {}
        for each in pilots:
            if (door := self.to(each.site, each.ce, each.dispatcher)) is not None:
                found.setdefault(door, []).append(each)
        return found
