"""Changes of a job's requirements with which it would fit more computing elements, and how many slots they would open.

For an element each failing clause (a rule of the fit, such as memory) is relaxed to what the element offers, and no further. A
candidate is a job's whole requirements with some clauses relaxed. The functions that refused the original judge each candidate,
and only those that fit are reported. The smallest set of clauses that opens a slot counts: single clauses if one is enough, else
pairs, and so on.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from wms.errors import shown
from wms.matching.clauses import OF_JOBS_AD
from wms.matching.grouping import HOUR, Requirements, processor_tags, processors_needed
from wms.matching.two_sided import terms_of, without_failing
from wms.provisioning.demand import JobDemand
from wms.site import ComputingElement
from wms.why.verdict import ElementSupply, Verdict, room

MOST = 5
_CANDIDATES = 4

Segments = tuple[int, ...]


class RelaxedFit(NamedTuple):
    """Relaxed requirements, the names of the relaxed clauses, and the computing elements that the job would then fit."""

    clauses: tuple[str, ...]
    requirements: Requirements
    places: tuple[ElementSupply, ...]

    @property
    def slots(self) -> int:
        """How many jobs with the relaxed requirements could run at the same time at these elements, if the elements were empty."""
        return room(self.requirements, self.places)


def openings(
    requirements: Requirements, found: Iterable[Verdict], segments: Segments, most: int = MOST
) -> list[RelaxedFit]:
    """Return the smallest changes of requirements with which a job fits further elements; at most `most`, those with most slots first.

    `found` are the verdicts of all elements on the job; only elements with a valid ad count. `segments` are the CPU times, in
    seconds, to which requests are rounded up: a job can request no other.
    """
    by_clauses: dict[tuple[str, ...], list[ElementSupply]] = {}
    for verdict in found:
        if verdict.failing and verdict.place.fresh:
            names = tuple(sorted({mismatch.clause for mismatch in verdict.failing}))
            by_clauses.setdefault(names, []).append(verdict.place)
    for size in sorted({len(names) for names in by_clauses}):
        opened = [
            opening
            for names, places in by_clauses.items()
            if len(names) == size
            for opening in _of_clauses(requirements, names, places, by_clauses, segments)
        ]
        if opened:
            return sorted(opened, key=lambda each: (-each.slots, each.clauses))[:most]
    return []


def _of_clauses(
    requirements: Requirements,
    names: tuple[str, ...],
    places: Sequence[ElementSupply],
    by_clauses: dict[tuple[str, ...], list[ElementSupply]],
    segments: Segments,
) -> list[RelaxedFit]:
    # A change that opens an element where all of these fail also opens those where only some do.
    nearest = [place for other, each in by_clauses.items() if set(other) <= set(names) for place in each]
    found: dict[tuple[int, ...], RelaxedFit] = {}
    for candidate in _candidates(requirements, names, places, segments):
        # Nothing else fails there: only the changed clauses need to be judged again.
        changed = JobDemand(candidate, since=requirements)
        opened = tuple(n for n, place in enumerate(nearest) if not changed.obstacles(place.element))
        if opened and opened not in found:
            found[opened] = RelaxedFit(names, candidate, tuple(nearest[n] for n in opened))
    return list(found.values())


def _candidates(
    requirements: Requirements, names: tuple[str, ...], places: Sequence[ElementSupply], segments: Segments
) -> list[Requirements]:
    """Return the relaxed requirements to try, least relaxed first: in each, the clauses `names` are relaxed so that one of `places` fits.

    Of all such requirements these are the first, the last, and those that suit the elements with the most slots. Less memory, less time or
    fewer tags are the greater change. `segments` are the CPU times to which a requested time is rounded up.
    """
    alike: dict[Any, list[ComputingElement]] = {}
    fields = [field for name in names if name in _RELAX for field in _RELAX[name].fields]
    for place in places:
        alike.setdefault(tuple(getattr(place.element, field, "") for field in fields), []).append(
            place.element
        )
    slots: dict[Requirements, int] = {}
    for elements in alike.values():
        changed = relaxed(requirements, names, elements[0], segments)
        if changed is not None:
            slots[changed] = slots.get(changed, 0) + sum(element.slots for element in elements)
    by_change = sorted(slots, key=_boldness)
    widest = sorted(slots, key=lambda each: -slots[each])[:_CANDIDATES]
    return sorted({*by_change[:1], *by_change[-1:], *widest}, key=_boldness)


def _boldness(changed: Requirements) -> tuple[int, int, int, int, int]:
    """Return a sort key by which smaller changes come first. Less memory, less time, fewer tags or fewer conjuncts make a greater change."""
    terms = len(terms_of(changed))
    return (
        -changed.min_ram_mb,
        -changed.cpu_segment,
        -processors_needed(changed),
        -len(changed.tags),
        -terms,
    )


def relaxed(
    requirements: Requirements, names: Iterable[str], element: ComputingElement, segments: Segments
) -> Requirements | None:
    """Return the requirements with the clauses in `names` relaxed to what an element offers.

    Return None if a clause cannot be relaxed, or if a job cannot request the result.
    """
    changed: Requirements | None = requirements
    for name in names:
        relax = _RELAX.get(name)
        changed = relax.change(changed, element, segments) if relax and changed is not None else None
    return changed


Change = Callable[[Requirements, ComputingElement, Segments], Requirements | None]


class ClauseRelaxation(NamedTuple):
    """The way in which one clause (rule of the fit) is relaxed: a function that changes the requirements for an element.

    `fields` are the element's fields that the function reads.
    """

    change: Change
    fields: tuple[str, ...] = ()


def _without(field: str) -> ClauseRelaxation:
    return ClauseRelaxation(lambda requirements, _, __: replace(requirements, **{field: ()}))


def _setup(requirements: Requirements, element: ComputingElement, _: Segments) -> Requirements | None:
    return replace(requirements, setup=element.setup) if element.setup else None


def _unbanned(requirements: Requirements, element: ComputingElement, _: Segments) -> Requirements:
    kept = tuple(site for site in requirements.banned_sites if site.casefold() != element.site.casefold())
    return replace(requirements, banned_sites=kept)


def _job_type(requirements: Requirements, element: ComputingElement, _: Segments) -> Requirements:
    return replace(requirements, job_types=element.job_types[:1])


def _tags(requirements: Requirements, element: ComputingElement, _: Segments) -> Requirements:
    """Relax to fewer tags, and to no more processors than a pilot of the element has."""
    processors = processors_needed(requirements)
    offered = element.pilot_resource(vo=requirements.vo)
    kept = [tag for tag in _plain_tags(requirements) if offered.offers(tag)]
    return replace(requirements, tags=(*kept, *processor_tags(min(processors, offered.processors))))


def _required_tags(requirements: Requirements, element: ComputingElement, _: Segments) -> Requirements:
    return replace(requirements, tags=(*requirements.tags, *element.required_tags))


def _memory(requirements: Requirements, element: ComputingElement, _: Segments) -> Requirements:
    return replace(requirements, min_ram_mb=element.memory_mb)


def _disk(requirements: Requirements, element: ComputingElement, _: Segments) -> Requirements:
    return replace(requirements, min_disk_mb=element.disk_mb)


def _conjuncts(requirements: Requirements, element: ComputingElement, _: Segments) -> Requirements | None:
    """Drop the conjuncts that the element's ad does not meet."""
    return without_failing(requirements, element.pilot_resource(vo=requirements.vo))


def _cpu_time(
    requirements: Requirements, element: ComputingElement, segments: Segments
) -> Requirements | None:
    allowed = [each for each in segments if each <= element.max_cpu_time]
    if len(allowed) == len(segments):
        allowed.append(element.max_cpu_time // HOUR * HOUR)
    return replace(requirements, cpu_segment=max(allowed)) if allowed else None


_RELAX: dict[str, ClauseRelaxation] = {
    "setup": ClauseRelaxation(_setup, ("setup",)),
    "pilot type": _without("pilot_types"),
    "site": _without("sites"),
    "banned site": ClauseRelaxation(_unbanned, ("site",)),
    "grid CE": _without("grid_ces"),
    "platform": _without("platforms"),
    "job type": ClauseRelaxation(_job_type, ("job_types",)),
    "tags": ClauseRelaxation(_tags, ("tags", "cores_per_pilot")),
    "required tags": ClauseRelaxation(_required_tags, ("required_tags",)),
    "memory": ClauseRelaxation(_memory, ("memory_mb",)),
    "disk": ClauseRelaxation(_disk, ("disk_mb",)),
    OF_JOBS_AD: ClauseRelaxation(_conjuncts, ("site", "ce", "ad")),
    "CPU time": ClauseRelaxation(_cpu_time, ("max_cpu_time",)),
    "submit pool": _without("submit_pools"),
    "grid middleware": _without("grid_middlewares"),
}
"""The way to relax each clause. A job's owner, an element's VOs and an element's requirements cannot be relaxed."""


# --- in words --------------------------------------------------------------------------------------------------------

_SETS = {
    "site": "sites",
    "banned-site": "banned_sites",
    "ce": "grid_ces",
    "platform": "platforms",
    "pilot-type": "pilot_types",
    "submit-pool": "submit_pools",
    "grid-middleware": "grid_middlewares",
}


def changes(before: Requirements, after: Requirements) -> list[str]:
    """Return the differences between two requirements as texts, in terms of the options of `wms submit`."""
    said = []
    if before.cpu_segment != after.cpu_segment:
        said.append(f"cpu-time of at most {after.cpu_segment} s instead of {before.cpu_segment}")
    if before.min_ram_mb != after.min_ram_mb:
        less = f"memory {after.min_ram_mb} MB instead of {before.min_ram_mb}"
        said.append(less if after.min_ram_mb else "without saying memory")
    if before.min_disk_mb != after.min_disk_mb:
        said.append(f"disk {after.min_disk_mb} MB instead of {before.min_disk_mb}")
    many, fewer = processors_needed(before), processors_needed(after)
    if many != fewer:
        said.append(f"processors {fewer} instead of {many}")
    if before.setup != after.setup:
        said.append(f"setup {after.setup} instead of {before.setup}")
    if before.job_types != after.job_types:
        said.append(f"job-type {_listed(after.job_types)} instead of {_listed(before.job_types)}")
    gone = [each for each in terms_of(before) if each not in terms_of(after)]
    said += [f"requirements without {shown(each, 200)}" for each in gone]
    for option, field in _SETS.items():
        said += _less(option, getattr(before, field), getattr(after, field))
    # The tag for several processors follows from their number.
    implied = many != fewer
    return said + _less("tag", _plain_tags(before, implied=implied), _plain_tags(after, implied=implied))


def _plain_tags(requirements: Requirements, *, implied: bool = True) -> tuple[str, ...]:
    """Return the tags without the number of processors and the tags implied by it."""
    processors = processors_needed(requirements)
    of_processors = {f"{processors}processors"} if processors > 1 else set()
    if implied and processors > 1:
        of_processors.add("multiprocessor")
    return tuple(tag for tag in requirements.tags if tag.casefold() not in of_processors)


def _less(option: str, before: Sequence[str], after: Sequence[str]) -> list[str]:
    gone = [value for value in before if value not in after]
    new = [value for value in after if value not in before]
    return [
        f"{word} {option} {_listed(values)}" for word, values in (("without", gone), ("with", new)) if values
    ]


def _listed(values: Sequence[str], most: int = 4) -> str:
    return ", ".join(values[:most]) + (f" and {len(values) - most} more" if len(values) > most else "")
