"""Checks at submission whether jobs can run at any computing element. Results are kept in memory until ads change."""

import time
from collections.abc import Callable, Generator, Iterable, Mapping
from itertools import chain
from typing import TypeAlias

from msgspec.structs import replace

from services.job_manager.queries.relaxations import relaxations
from wms.db import wait_reason
from wms.db.database import Transaction
from wms.job.wait_reason_codes import WaitCode
from wms.matching.ads import combined
from wms.matching.grouping import Requirements
from wms.messages.replies import Foreseen
from wms.provisioning.demand import JobDemand
from wms.provisioning.known_elements import KnownElement, PilotCounts
from wms.site import AdvertisedElement, ComputingElement, folded
from wms.why.survey import fixed
from wms.why.verdict import ElementSupply, verdicts
from wms.why.wait_reason_text import contradiction, judge, standing

FRESH_SECONDS = 1.0
REMEMBERED, REMEMBERED_BYTES = 100_000, 16 * 1024 * 1024
TOLD = 10
"""The largest number of different obstacles in the answer to a submission."""


Steady: TypeAlias = tuple[ComputingElement, str]


class SubmitCheck:
    """Checks whether any known computing element can run given jobs, now or ever.

    `segments` are the CPU segments of task queues. `clock` returns monotonic seconds.
    """

    def __init__(self, segments: tuple[int, ...], clock: Callable[[], float] = time.monotonic) -> None:
        self._segments = segments
        self._clock = clock
        self._looked_at = float("-inf")
        self._places: list[ElementSupply] = []
        self._known: list[KnownElement] = []
        self._at_site: dict[str, list[ComputingElement]] = {}
        self._steady: set[tuple[Steady, bool]] = set()
        self._runs: dict[Requirements, bool] = {}
        self._asking: list[Requirements] = []
        """Those of the checked requirements that have expressions over ads."""
        self._obstacles: dict[Requirements, Foreseen] = {}
        self._bytes = 0
        """The total size of the expressions in the kept requirements, in bytes."""

    async def look(self, tx: Transaction) -> None:
        """Read the computing elements from the database, unless this was done within the last second."""
        if self.is_due():
            self.learn(await wait_reason.known(tx))

    def is_due(self) -> bool:
        """Return whether the computing elements must be read again: at most once a second.

        If it returns True the caller must read them, because it then returns False for a second.
        """
        now = self._clock()
        if now - self._looked_at < FRESH_SECONDS:
            return False
        self._looked_at = now
        return True

    def learn(self, elements: Iterable[KnownElement]) -> None:
        """Use these computing elements from now on. Must not run while another thread calls `foresee`."""
        known = [KnownElement(fixed(each.element), each.fresh) for each in elements]
        if known != self._known:
            self._known = known
            self._places = [ElementSupply.of(each, PilotCounts()) for each in known]
            self._at_site = {}
            for each in known:
                if each.fresh:
                    self._at_site.setdefault(each.element.site.casefold(), []).append(each.element)
            self._forget(known)

    def _forget(self, known: Iterable[KnownElement]) -> None:
        """Drop kept verdicts after ads changed. Verdicts on jobs without expressions are dropped only if more than attributes of ads changed."""
        steady = {(_steady(each.element), each.fresh) for each in known}
        if steady != self._steady:
            self._steady = steady
            self._runs.clear()
            self._obstacles.clear()
            return
        for wanted in [each for each in self._asking if each in self._runs]:
            self._runs.pop(wanted, None)
            self._obstacles.pop(wanted, None)
        self._asking.clear()

    def foresee(self, wanted: Mapping[Requirements, int]) -> Generator[None, None, tuple[Foreseen, ...]]:
        """Find, in steps, why jobs can run nowhere. `wanted` are requirements with their numbers of jobs.

        Return one obstacle for each of the requirements that no computing element meets, at most TOLD.
        """
        hopeless: list[Foreseen] = []
        for each, count in wanted.items():
            if each not in self._runs:
                yield
            if len(hopeless) < TOLD and not self._runs_somewhere(each):
                yield
                hopeless.append(_counted(self._obstacle(each), count))
        return tuple(hopeless)

    def _runs_somewhere(self, wanted: Requirements) -> bool:
        runs = self._runs.get(wanted)
        if runs is None:
            self._make_room(wanted)
            if wanted.requirements:
                self._asking.append(wanted)
            runs = self._runs[wanted] = not contradiction(wanted) and self._is_reached(wanted)
        return runs

    def _make_room(self, wanted: Requirements) -> None:
        """Drop all verdicts if they take too much memory. Expressions may have any size. `wanted` is about to be added."""
        self._bytes += len(wanted.requirements) + len(wanted.rank) + len(wanted.attributes)
        if len(self._runs) >= REMEMBERED or self._bytes > REMEMBERED_BYTES:
            self._runs.clear()
            self._obstacles.clear()
            self._asking.clear()
            self._bytes = 0

    def _is_reached(self, requirements: Requirements) -> bool:
        wanted = JobDemand(requirements)
        return any(not wanted.obstacles(element) for element in self._near(requirements.sites))

    def _near(self, sites: Iterable[str]) -> Iterable[ComputingElement]:
        """Return the elements with a valid ad: those at the named sites, or all if no site is named."""
        return chain.from_iterable(
            (self._at_site.get(site, []) for site in folded(tuple(sites)))
            if sites
            else self._at_site.values()
        )

    def _obstacle(self, wanted: Requirements) -> Foreseen:
        found = self._obstacles.get(wanted)
        if found is None:
            said = verdicts(wanted, self._places)
            code, text = judge(standing(wanted, said))
            found = Foreseen(
                code=code, text=text, jobs=0, relaxations=relaxations(wanted, said, self._segments)
            )
            self._obstacles[wanted] = found
        return found


def _steady(element: ComputingElement) -> Steady:
    """Return what verdicts on jobs without expressions depend on: the element without its ad, and the requirements in the ad."""
    if not isinstance(element, AdvertisedElement):
        return element, ""
    required = combined(element.ad, (), frozenset({"requirements"})).requirements
    return replace(element, ad=""), required.text if required else ""


def _counted(foreseen: Foreseen, jobs: int) -> Foreseen:
    return Foreseen(code=foreseen.code, text=foreseen.text, jobs=jobs, relaxations=foreseen.relaxations)


def in_words(foreseen: Iterable[Foreseen]) -> tuple[str, ...]:
    """Return one line of text for each obstacle: how many jobs it concerns, what it is, and what would help."""
    return tuple(map(_in_words, foreseen))


def _in_words(each: Foreseen) -> str:
    jobs = "1 job" if each.jobs == 1 else f"{each.jobs:,} jobs"
    when = "can never run as it is" if each.code == WaitCode.NEVER_POSSIBLE else "cannot run now"
    best = f"; {each.relaxations[0].text()} would do" if each.relaxations else ""
    return f"{each.code}: {jobs} {when if each.jobs == 1 else when.replace('as it is', 'as they are')}: {each.text}{best}"
