"""The outlook of all task queues at once: where their jobs could run, and why they wait. Made for thousands of queues and elements.

Each distinct condition of a clause is judged once for each computing element. Array operations compute the same sums as
`wms.why.wait_reason_text.standing` does for one queue; a test keeps both equal. The free slots of an element are divided as the draw
would: to the highest CPU segment first, among its queues by weight.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from wms.ids import CeId
from wms.matching.clauses import CLAUSES, CPU_TIME, OF_ADS, OF_NAMES, Clause
from wms.matching.closed_pairs import Pair
from wms.matching.closures import Closures
from wms.matching.grouping import Requirements
from wms.provisioning.demand import WAYS, SendingClause, of_pilots_to_be, pilot_at
from wms.provisioning.known_elements import KnownElement, PilotCounts
from wms.queue_index.clause_columns import column_of
from wms.queue_index.effort import Effort
from wms.queue_index.growable_array import GrowableArray
from wms.queue_index.significant_attributes import SignificantAttributes
from wms.site import ComputingElement, Resource, plain
from wms.why.wait_reason_text import QueueOutlook, contradiction

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


_NOWHERE: Mapping[CeId, str] = {}


class _Column:
    """One clause over all queues. It stores the distinct conditions, and for each queue the number of its condition."""

    def __init__(self, part: Callable[[Requirements], Hashable], holds: Callable[[Any, Any], bool]) -> None:
        self._part = part
        self._holds = holds
        self._numbers: dict[Hashable, int] = {}
        self._parts: list[Hashable] = []
        self._of_queue = GrowableArray(np.int64)

    def append(self, requirements: Requirements) -> None:
        part = self._part(requirements)
        number = self._numbers.setdefault(part, len(self._parts))
        if number == len(self._parts):
            self._parts.append(part)
        self._of_queue.append(number)

    def judge(self, place: Any, start: int) -> Mask:
        """Return a mask of the queues for which the clause holds at `place`, a resource or an element. The first entry is for queue `start`."""
        queues = self._of_queue.values[start:]
        verdicts = np.ones(len(self._parts), dtype=np.bool_)
        # Few queues were added: few parts are judged.
        for number in np.unique(queues).tolist() if start else range(len(self._parts)):
            verdicts[number] = self._holds(self._parts[number], place)
        found: Mask = verdicts[queues]
        return found


class _Group:
    """Clauses that read the same fields of an element. Elements that are equal in these fields are judged once."""

    def __init__(self, clauses: Iterable[SendingClause | Clause], same: Callable[[Any], Hashable]) -> None:
        self._columns = [_Column(each.part, each.holds) for each in clauses]
        self._same = same
        self._masks: dict[Hashable, Mask] = {}
        self._in_use: dict[Hashable, Mask] = {}
        self._count = 0

    def append(self, requirements: Requirements) -> None:
        self._count += 1
        for each in self._columns:
            each.append(requirements)

    def mask(self, place: Any) -> Mask:
        """Return the mask of the queues for which all clauses hold at `place`, a resource or an element."""
        key = self._same(place)
        found = self._in_use.get(key)
        if found is None or len(found) < self._count:
            found = self._masks.get(key, np.empty(0, dtype=np.bool_))
            start = len(found)
            if start < self._count:
                new = np.ones(self._count - start, dtype=np.bool_)
                for column in self._columns:
                    new &= column.judge(place, start)
                found = np.concatenate([found, new])
            self._in_use[key] = found
        return found

    def forget_unused(self) -> None:
        """Drop cached masks that were not used since the last call."""
        self._masks, self._in_use = self._in_use, {}


class _Ads:
    """The clauses that evaluate ClassAds, judged as the matcher does."""

    def __init__(self, effort: Effort) -> None:
        self._ad_classes = SignificantAttributes()
        self._columns = [column_of(each, self._ad_classes, effort) for each in CLAUSES if each.name in OF_ADS]
        self._count = 0
        self.undecided: set[int] = set()
        """The queues that `mask` left out since this was last cleared, because their expressions are not decided yet."""

    def append(self, requirements: Requirements) -> None:
        self._count += 1
        for each in self._columns:
            each.append(requirements)

    def mask(self, resource: Resource) -> Mask:
        """Return the mask of the queues for which the job's and the element's expressions both hold."""
        found = np.ones(self._count, dtype=np.bool_)
        ad_class = self._ad_classes.of(resource)
        for each in self._columns:
            if (bits := each.bits(resource, ad_class)) is not None:
                found &= np.unpackbits(bits, count=self._count, bitorder="little").astype(np.bool_)
            if each.undecided is not None:
                self.undecided.update(np.flatnonzero(each.undecided).tolist())
        return found


class Survey:
    """A survey of task queues and of the elements that they fit. Queues are numbered in the order in which they are added.

    Masks of the fitting queues are cached between calls.
    """

    def __init__(self) -> None:
        self.requirements: list[Requirements] = []
        self._ways = _Group(WAYS, lambda at: (at.vos, at.submit_pools, at.grid_middleware, at.dispatcher))
        # Pilots are made for the queue's own VO, so that this clause holds.
        clauses = [each for each in CLAUSES if each.name != "vo"]
        self._by_time = _Group([CPU_TIME], attrgetter("cpu_time"))
        self._by_name = [
            _Group([each for each in clauses if OF_NAMES.get(each.name) == name], attrgetter(name))
            for name in sorted(set(OF_NAMES.values()))
        ]
        self._by_kind = _Group(
            [each for each in clauses if each.name not in OF_NAMES and each.name not in OF_ADS], plain
        )
        self.effort = Effort()
        """What the evaluation of jobs' expressions may take. Later calls of `standings` judge further."""
        self._ads = _Ads(self.effort)
        self._closed = Closures()
        self._closed_at: set[CeId] = set()
        self.faults: list[tuple[ComputingElement, str]] = []
        """The computing elements that the last call of `standings` skipped because of an error, each with the error's text."""

    @property
    def undecided(self) -> set[int]:
        """The numbers of the queues for which the effort of the last call of `standings` lacked. Their outlooks are not complete."""
        return self._ads.undecided

    def append(self, requirements: Requirements) -> None:
        """Add a task queue with these requirements to the survey; it gets the next number, from 0."""
        self.requirements.append(requirements)
        requirements = of_pilots_to_be(requirements)
        self._closed.append(requirements)
        self._ads.append(requirements)
        for group in self._groups():
            group.append(requirements)

    def standings(  # noqa: PLR0917 - what waits, what there is, and what is shut
        self,
        waiting: Ints,
        weights: Floats,
        known: Sequence[KnownElement],
        crews: Mapping[tuple[str, str, str], PilotCounts],
        closed: Mapping[CeId, Iterable[Pair]],
        avoided: Mapping[CeId, str] = _NOWHERE,
    ) -> list[QueueOutlook]:
        """Return the outlook of every queue, in the order of their numbers.

        `waiting` and `weights` are the number of waiting jobs and the weight of each queue. `crews` are pilot counts by site,
        element and VO. `closed` has the limits that are reached, by site and element ("" for a whole site). `avoided` has the
        reasons why elements get no work (`wms.why.notices.shut_out`).
        """
        self._close(closed)
        self._closed.avoid(avoided)
        self.faults = []
        self._ads.undecided.clear()
        sums = _Sums(self.requirements, waiting, weights)
        reached = self._all_reached(known)
        for each, (but_time, here) in reached:
            try:
                self._add(sums, each, but_time, here, crews)
            except Exception as fault:  # noqa: BLE001 - the element's, whatever it is
                self.faults.append((each.element, repr(fault)))
        return sums.standings(len(known), sum(each.fresh for each in known), self._limit)

    def _add(
        self,
        sums: "_Sums",
        each: KnownElement,
        but_time: Mask,
        here: Mask,
        crews: Mapping[tuple[str, str, str], PilotCounts],
    ) -> None:
        sums.add_short(each.element.max_cpu_time, but_time & ~here)
        place = each.element.ce_id
        sums.add(each, here, self._closed.slots(*place), self._closed.shut(*place))
        if each.fresh:
            for vo in sums.vos:
                if crew := crews.get((*place, vo)):
                    sums.add_crew(vo, crew)

    def _close(self, closed: Mapping[CeId, Iterable[Pair]]) -> None:
        for site, ce in self._closed_at - closed.keys():
            self._closed.close(site, ce, ())
        for (site, ce), pairs in closed.items():
            self._closed.close(site, ce, pairs)
        self._closed_at = set(closed)

    def _limit(self, number: int, element: ComputingElement) -> str:
        return self._closed.detail(element.pilot_resource(vo=""), number)

    def _groups(self) -> tuple[_Group, ...]:
        return (self._ways, self._by_time, self._by_kind, *self._by_name)

    def _all_reached(self, known: Sequence[KnownElement]) -> list[tuple[KnownElement, tuple[Mask, Mask]]]:
        """Return for each element without faults two masks: the queues that fit, and those that would fit with more CPU time."""
        reached = []
        for each in known:
            try:
                reached.append((each, self._reached(each.element)))
            except Exception as fault:  # noqa: BLE001 - likewise
                self.faults.append((each.element, repr(fault)))
        for group in self._groups():
            group.forget_unused()
        return reached

    def _reached(self, element: ComputingElement) -> tuple[Mask, Mask]:
        if element.fault() is not None:
            nobody = np.zeros(len(self.requirements), dtype=np.bool_)
            return nobody, nobody
        resource = pilot_at(fixed(element), "any VO").resource
        reached = self._ways.mask(element) & self._by_kind.mask(resource) & self._ads.mask(resource)
        for group in self._by_name:
            reached &= group.mask(resource)
        return reached, reached & self._by_time.mask(resource)


def fixed(element: ComputingElement) -> ComputingElement:
    """Return an element with its load and job counts set to 0. No clause reads these, so more elements become equal and share one judgement."""
    return replace(element, load=0.0, current_jobs=0, current_submitting_jobs=0)


class _Sums:
    """Sums over the computing elements that were added so far, one value for each queue."""

    def __init__(self, requirements: Sequence[Requirements], waiting: Ints, weights: Floats) -> None:
        self._requirements = requirements
        self._waiting = waiting
        self._weights = weights
        self._segments = np.array([each.cpu_segment for each in requirements], dtype=np.int64)
        count = len(requirements)
        self._could = np.zeros(count, dtype=np.int64)
        self._longest = np.full(count, -1, dtype=np.int64)
        """The longest CPU time, in seconds, of an element that fails by CPU time alone; -1 if there is none."""
        self._fitting = np.zeros(count, dtype=np.int64)
        self._held = np.zeros(count, dtype=np.int64)
        self._avoided = np.zeros(count, dtype=np.int64)
        self._crew = np.zeros((len(PilotCounts._fields), count), dtype=np.int64)
        self._expected = np.zeros(count)
        self._held_at: dict[int, ComputingElement] = {}
        self._avoided_at: dict[int, ComputingElement] = {}
        self._open = np.zeros(count, dtype=np.bool_)
        numbers: dict[str, list[int]] = {}
        for number, each in enumerate(requirements):
            numbers.setdefault(each.vo, []).append(number)
        self.vos = {vo: np.array(each, dtype=np.int64) for vo, each in numbers.items()}

    def add_short(self, seconds: int, short: Mask) -> None:
        """Record that an element excludes the queues of the mask `short` by its CPU time alone. `seconds` is that CPU time."""
        self._longest[short] = np.maximum(self._longest[short], seconds)

    def add(self, known: KnownElement, reached: Mask, closed: Mask | None, shut: Mask | None) -> None:
        """Add an element that fits the queues of the mask `reached`.

        `closed` masks the queues that a limit holds back there; `shut` those held back because the element is avoided. None: no queue.
        """
        self._could += reached
        if not known.fresh:
            return
        self._fitting += reached
        self._open = reached
        if closed is not None:
            held = reached & closed
            self._held += held
            self._open = reached & ~closed
            avoided = np.zeros_like(held) if shut is None else reached & shut
            self._avoided += avoided
            for at, mask in ((self._held_at, held & ~avoided), (self._avoided_at, avoided)):
                for number in np.flatnonzero(mask).tolist():
                    at.setdefault(number, known.element)

    def add_crew(self, vo: str, crew: PilotCounts) -> None:
        """Add the pilots of a VO at the element that was added last."""
        numbers = self.vos[vo][self._open[self.vos[vo]]]
        self._crew[:, numbers] += np.array(crew, dtype=np.int64)[:, None]
        left = crew.free_slots
        wanting = numbers[self._waiting[numbers] > 0]
        for segment in np.unique(self._segments[wanting])[::-1]:
            if left <= 0:
                break
            drawn = wanting[self._segments[wanting] == segment]
            jobs = self._waiting[drawn]
            if left >= jobs.sum():
                self._expected[drawn] += jobs
            else:
                self._expected[drawn] += left * self._weights[drawn] / (self._weights[drawn].sum() or 1.0)
            left -= int(jobs.sum())

    def standings(
        self, known: int, fresh: int, limit: Callable[[int, ComputingElement], str]
    ) -> list[QueueOutlook]:
        """Return the outlook of every queue. `known` and `fresh` are the numbers of known and of advertising elements."""
        rows = zip(
            self._could.tolist(), self._longest.tolist(), self._fitting.tolist(), self._held.tolist(), self._avoided.tolist(), self._crew.T.tolist(),
            self._expected.tolist(), strict=True,
        )  # fmt: skip
        return [
            QueueOutlook(
                contradiction=contradiction(self._requirements[number]),
                known=known,
                fresh=fresh,
                could=could,
                longest=longest if longest >= 0 else None,
                asked=self._requirements[number].cpu_segment,
                fitting=fitting,
                held=held,
                avoided=avoided,
                limit=limit(number, (self._held_at.get(number) or self._avoided_at[number])) if held else "",
                pilots=crew[0],
                coming=crew[1],
                slots=crew[2],
                free_slots=crew[3],
                chance=min(1.0, expected / crew[3]) if crew[3] else 1.0,
            )
            for number, (could, longest, fitting, held, avoided, crew, expected) in enumerate(rows)
        ]
