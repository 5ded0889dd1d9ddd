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
from wms.dispatch.forwarding import HostRequestTerms
from wms.dispatch.mapping import HostMapping
from wms.dispatch.mapping_script import ScriptedMapping
from wms.dispatch.port import Dispatcher, Request
from wms.errors import Unavailable
from wms.ids import CeId
from wms.runtime.pilot_config import SandboxSettings
from wms.site import ComputingElement
from wms.transfer.movers import TransferSettings

log = structlog.get_logger()

FIRST_PAUSE, LONGEST_PAUSE = 2.0, 600.0
ANSWER_SECONDS = 60.0
"""How long a call to an element may take, in seconds. After that it is cancelled, and the element counts as unreachable."""


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
    """Forbids tries for a pause after a failure. The pauses about double with each failure, until a try succeeds.

    `clock` returns monotonic seconds, and `first` is the length of the first pause in seconds. No pause is longer than
    `LONGEST_PAUSE` seconds, and each is shortened at random by up to half.
    """

    def __init__(self, clock: Callable[[], float], first: float = FIRST_PAUSE) -> None:
        self._clock = clock
        self._first = first
        self._not_before = 0.0
        self._pauses: Iterator[float] | None = None

    @property
    def over(self) -> bool:
        """Whether another try is allowed now, since no pause lasts."""
        return self._clock() >= self._not_before

    @property
    def seconds_left(self) -> float:
        """Seconds until the pause ends; 0 without one."""
        return max(0.0, self._not_before - self._clock())

    def failed(self) -> float:
        """Record a failed try: begin the next pause, and return its length in seconds.

        If a pause lasts already, it is not made longer, and the seconds that are left of it are returned.
        """
        if self.over:
            self._pauses = self._pauses or delays(self._first, LONGEST_PAUSE, 2.0, random.Random().random)
            self._not_before = self._clock() + next(self._pauses)
        return self._not_before - self._clock()

    def succeeded(self) -> None:
        """End the pause, and forget all failures."""
        self._pauses, self._not_before = None, 0.0


class EndpointSettings(NamedTuple):
    """The settings of one endpoint: what pilots request there, and how they reach the services.

    `kind` is the kind of dispatcher. `software` is a directory on the nodes whose entries name their runtime environments;
    empty: none. `follow_every_seconds` is the pause between two readings of the pilots' states.
    """

    kind: str = "local"
    lifetime_seconds: float = 0.0
    """Seconds after its start at which a pilot takes no more jobs; 0: as configured for all pilots."""
    sandboxes: SandboxSettings | None = None
    """How pilots there reach the sandbox store; None: as configured for all pilots."""
    asks: HostRequestTerms | None = None
    """How requests are translated for the batch system; None: pilots request the cores and memory of the element's ad, and nothing else."""
    software: str = ""
    transfers: TransferSettings | None = None
    """The site's settings for files by URL; None: as configured for all elements."""
    follow_every_seconds: float = 0.0
    link: Link | Literal[""] = ""
    """How pilots there reach the services; "": as configured for all pilots."""
    direct_trusted: tuple[str, ...] = ()
    """Whose jobs may be sent there directly, as patterns `VO/GROUP/OWNER`."""


class CeEndpoint:
    """How one computing element is reached: its dispatcher, its settings, and two circuit breakers.

    One breaker opens when the element does not answer, the other when its pilots are refused or die before they report.
    """

    def __init__(
        self,
        place: CeId,
        dispatcher: Dispatcher,
        clock: Callable[[], float],
        terms: EndpointSettings,
        script: ScriptAnswers | None = None,
    ) -> None:
        """Build an endpoint for the computing element `place`; `clock` returns monotonic seconds.

        `script` has the answers of the site's mapping script; None: it has none. Raise Rejected if `terms` have a malformed
        rule for requesting hosts.
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
        """Why the endpoint's last pause began, as a text for operators; empty before the first pause."""

    def asks_as_json(self) -> str:
        """Return how requests for hosts are translated for the batch system, as JSON, with the latest answers of the mapping script.

        Other services explain by it why a job fits an element or not.
        """
        asks = self.terms.asks
        if asks is not None and self.script is not None:
            asks = replace(asks, answers=self.script.latest())
        return msgspec.json.encode(asks).decode()

    @property
    def pause_seconds(self) -> float:
        """Seconds until pilots may be sent again; 0 if they may be sent now."""
        return max(self._reach.seconds_left, self._trust.seconds_left)

    @property
    def open(self) -> bool:
        """Whether pilots may be sent now: neither of the endpoint's circuit breakers has a pause."""
        return self.reachable and self._trust.over

    @property
    def reachable(self) -> bool:
        """Whether the element may be called: it answered the last call, or the pause since its last failure is over."""
        return self._reach.over

    @property
    def due(self) -> bool:
        """Whether the states of the element's pilots are to be read now: it is reachable, and its interval between readings is over."""
        return self.reachable and self._clock() >= self._followed_at + self.terms.follow_every_seconds

    def request(self, element: ComputingElement) -> Request:
        """Return what a pilot without requests for certain hosts asks the batch system for.

        That is the cores and memory in `element`'s ad. The endpoint's settings may add wall time and options.
        """
        if self.terms.asks is None:
            return Request(cores=element.cores_per_pilot, memory_mb=element.memory_mb)
        return self.terms.asks.usual(element)

    def reached(self) -> None:
        """Record that the element answered: the pause that began when it was unreachable ends."""
        self._reach.succeeded()

    def followed(self) -> None:
        """Record that the states of the element's pilots were read just now, and so that it answered."""
        self._followed_at = self._clock()
        self.reached()

    def unreachable(self, why: str) -> None:
        """Record that the element did not answer, which begins a pause unless one lasts; `why` is a text for operators."""
        self._pause(self._reach, "element unreachable", why)

    def lost(self, why: str) -> None:
        """Record that pilots were refused, or died before they reported, which begins a pause unless one lasts.

        `why` is a text for operators.
        """
        self._pause(self._trust, "pilots lost", why)

    def _pause(self, patience: CircuitBreaker, what: str, why: str) -> None:
        if patience.over:
            site, ce = self.place
            self.why_shut = f"{what}: {why}"
            log.warning(what, site=site, ce=ce, reason=why, pause_seconds=round(patience.failed(), 1))

    async def ask(self, asked: Awaitable[T]) -> T | None:
        """Await a call of the dispatcher and return its result.

        Return None, and begin a pause, if the element is unavailable or does not answer within `ANSWER_SECONDS`.
        """
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await asked
        except (Unavailable, TimeoutError) as error:
            self.unreachable(str(error) or f"no answer within {ANSWER_SECONDS:g} s")
            return None

    def served(self) -> None:
        """Record that a pilot of the element has reported: the pause that began when pilots were lost ends."""
        self._trust.succeeded()


class CeEndpoints:
    """All endpoints: the configured ones, and one on this machine for each local element of the sites in `local_sites`.

    An ad names a kind of dispatcher, which only chooses among these endpoints: no ad can open a new one.
    """

    def __init__(
        self,
        local: Dispatcher,
        clock: Callable[[], float],
        endpoints: Iterable[CeEndpoint] = (),
        *,
        local_sites: Sequence[str] = (),
        local_terms: EndpointSettings = EndpointSettings(),  # noqa: B008 - a value that never changes
    ) -> None:
        """Build the set of endpoints; `endpoints` are the configured ones.

        `local` is the dispatcher of this machine, and `local_sites` are names or patterns of sites whose local elements it
        serves, with the settings `local_terms`.
        """
        self._local = local
        self._local_terms = local_terms
        self._local_sites = tuple(local_sites)
        self.clock = clock
        self._endpoints = {endpoint.place: endpoint for endpoint in endpoints}

    def asking(self) -> list[tuple[CeEndpoint, HostMapping]]:
        """Return the endpoints where pilots can request hosts with certain properties.

        Each comes with its mapping from jobs' requirements to requests of the batch system.
        """
        return [(endpoint, endpoint.mapping) for endpoint in self._endpoints.values() if endpoint.mapping]

    def script_revisions(self) -> tuple[int, ...]:
        """Return a number for each site's mapping script, which grows with each new answer or failure of the script."""
        return tuple(endpoint.script.revision for endpoint in self._endpoints.values() if endpoint.script)

    async def ask_scripts(self) -> bool:
        """Run each site's mapping script for the next of its waiting questions, all at the same time.

        Return whether more questions wait.
        """
        scripts = [(endpoint.script, endpoint.mapping) for endpoint in self._endpoints.values()]
        asked = [
            script.answer_next(mapping)
            for script, mapping in scripts
            if script is not None and isinstance(mapping, ScriptedMapping)
        ]
        return any(await asyncio.gather(*asked))

    def shut(self) -> list[CeEndpoint]:
        """Return the endpoints to which no pilots may be sent now, since a pause lasts."""
        return [endpoint for endpoint in self._endpoints.values() if not endpoint.open]

    def all(self) -> list[CeEndpoint]:
        """Return the configured endpoints, and the local ones that an earlier call of `to` has made."""
        return list(self._endpoints.values())

    def has(self, place: CeId) -> bool:
        """Return whether a computing element has a configured endpoint, or a local one that an earlier call of `to` has made."""
        return place in self._endpoints

    def to(self, site: str, ce: str, kind: str) -> CeEndpoint | None:
        """Return the endpoint of a computing element, if its dispatcher is of this kind; None if there is no such endpoint.

        For kind `local` the endpoint is made if the site is one of `local_sites`.
        """
        place = CeId(site, ce)
        endpoint = self._endpoints.get(place)
        if endpoint is None and kind == "local" and self._is_here(site):
            endpoint = self._endpoints[place] = CeEndpoint(place, self._local, self.clock, self._local_terms)
        return endpoint if endpoint is not None and endpoint.terms.kind == kind else None

    def _is_here(self, site: str) -> bool:
        return any(fnmatchcase(site, each) for each in self._local_sites)

    def behind(self, pilots: Iterable[S]) -> dict[CeEndpoint, list[S]]:
        """Return the pilots by the endpoint through which they were sent; those whose endpoint no longer exists are left out."""
        found: dict[CeEndpoint, list[S]] = {}
        for each in pilots:
            if (endpoint := self.to(each.site, each.ce, each.dispatcher)) is not None:
                found.setdefault(endpoint, []).append(each)
        return found
