"""Demand: the waiting work by kind, and the computing elements whose pilots could do it.

A pilot serves its whole VO, so queues that differ only in owner are one kind of work.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from wms.ids import CeId
from wms.matching.ads import CREDENTIALS, site_ad, without_unseen
from wms.matching.canary import is_canary
from wms.matching.clauses import OF_ADS, OF_NAMES, Mismatch, failing_parts, fits, parts, refusal
from wms.matching.grouping import Requirements, slots_needed
from wms.matching.limits import LimitKey
from wms.matching.two_sided import job_rank
from wms.provisioning.limit_headroom import LimitHeadroom
from wms.provisioning.pilot_class import PilotClass
from wms.provisioning.private_groups import NOBODY, PrivateGroups
from wms.provisioning.purpose import GROUPS
from wms.site import PRIVATE, ComputingElement, PilotOwner, Resource, ad_of, folded, plain, private

_EXAMPLES = 3
_OF_PLACE = OF_NAMES.keys() | OF_ADS
"""Clauses about the element itself, which differ for each element."""
_WHOSE = CREDENTIALS | {"owner", "ownergroup"}


class QueuedWork(Struct, frozen=True):
    """A task queue and the number of jobs that wait in it."""

    requirements: Requirements
    jobs: int


class Avoided(NamedTuple):
    """Why an element gets no work for now, and whether it gets canaries."""

    code: Literal["LIMIT", "BACKOFF", "QUARANTINE", "BANNED", "DRAINING"]
    why: str
    canaries: bool = False


_NOWHERE: Mapping[CeId, Avoided] = {}
_NO_KEYS: Mapping[int, tuple[LimitKey, ...]] = {}
_NOT_AVOIDED: Mapping[int, Avoided] = {}
_USUAL: Mapping[int, PilotClass] = {}
_UNRANKED: Mapping[int, float] = {}

HostsOf: TypeAlias = Callable[[Requirements, ComputingElement], PilotClass | Avoided | None]
"""The pilot class for some work at an element that it reaches: None for the usual, or why no pilots are sent for now."""


class WorkKind(NamedTuple):
    """Work that the same pilots could do. Its jobs are counted once, whatever the number of elements for them."""

    requirements: Requirements
    jobs: int
    processors: int
    elements: tuple[int, ...]
    """The elements where it may run now, by their numbers in the given order."""
    keys: Mapping[int, tuple[LimitKey, ...]] = _NO_KEYS
    """The limit keys that count its jobs, by element."""
    avoided: Mapping[int, Avoided] = _NOT_AVOIDED
    """Elements where it could run but that are avoided now, with the reason."""
    hosts: Mapping[int, PilotClass] = _USUAL
    """The class of pilots that are sent for it, by element, where it is not the usual one."""
    ranks: Mapping[int, float] = _UNRANKED
    """The job's rank of each element; empty if it has none."""
    owner_groups: tuple[str, ...] = ()
    """Some of the groups that own the jobs, which batch systems are told; no decision uses them."""
    private: PilotOwner | None = None
    """The owner of the private pilots that are sent for it; None: generic ones are sent."""


class Unservable(Struct, frozen=True, kw_only=True):
    """Work that no advertised element can do, and why each cannot. Owner and group are blank unless an expression may use them."""

    requirements: Requirements
    jobs: int
    reasons: tuple[str, ...]


class Demand(NamedTuple):
    """All waiting work; `unreached[e]` counts the jobs that may not run on element e by the first failing clause."""

    kinds: list[WorkKind]
    unservable: list[Unservable]
    unreached: list[Counter[str]]


class Way(NamedTuple):
    """One clause about sending a pilot to an element. The job's own clauses apply once the pilot is there."""

    name: str
    part: Callable[[Requirements], Hashable]
    holds: Callable[[Any, ComputingElement], bool]
    detail: Callable[[Any, ComputingElement], str]


def _middleware(element: ComputingElement) -> str:
    return element.grid_middleware or element.dispatcher


WAYS = (
    Way(
        "VO",
        lambda r: r.vo,
        lambda vo, at: not at.vos or vo in at.vos,
        lambda vo, at: f"{at.ce} takes no pilots of VO {vo}",
    ),
    Way(
        "submit pool",
        lambda r: folded(r.submit_pools),
        lambda pools, at: (
            not pools or not at.submit_pools or not set(pools).isdisjoint(folded(at.submit_pools))
        ),
        lambda pools, _: f"the job goes by {', '.join(pools)}",
    ),
    Way(
        "grid middleware",
        lambda r: folded(r.grid_middlewares),
        lambda wanted, at: not wanted or _middleware(at).casefold() in wanted,
        lambda _, at: f"{at.ce} is reached by {_middleware(at)}",
    ),
)
"""The clauses that must hold for a pilot of the job's VO to be sent to an element."""


def reach(
    requirements: Requirements, element: ComputingElement, owner: PilotOwner | None = None
) -> Mismatch | None:
    """Return None when a pilot of the job's VO, sent to an element, could run the job; else why not.

    The pilot is private with an `owner`, else generic.
    """
    for way in WAYS:
        part = way.part(requirements)
        if not way.holds(part, element):
            return Mismatch(way.name, way.detail(part, element))
    pilot = element.pilot_resource(vo=requirements.vo)
    return fits(requirements, private(pilot, owner, job_sharing=not owner.owner) if owner else pilot)


def of_pilots_to_be(requirements: Requirements) -> Requirements:
    """Return requirements as elements are judged by them. Private pilots may be ordered at any element, so that none fails by their lack."""
    if PRIVATE not in folded(requirements.pilot_types):
        return requirements
    return replace(requirements, pilot_types=())


class JobDemand:
    """A job's requirements, analysed once and judged at many elements; of elements that differ only in their names, once."""

    def __init__(self, requirements: Requirements, *, since: Requirements | None = None) -> None:
        """Analyse all requirements, or with `since` those that differ from it."""
        requirements = of_pilots_to_be(requirements)
        since = since and of_pilots_to_be(since)
        self._vo = requirements.vo
        self._ways = [(way, way.part(requirements)) for way in WAYS]
        asked = parts(requirements)
        if since is not None:
            self._ways = [(way, part) for way, part in self._ways if part != way.part(since)]
            asked = [(clause, part) for clause, part in asked if part != clause.part(since)]
        self._by_name = [each for each in asked if each[0].name in _OF_PLACE]
        self._by_kind = [each for each in asked if each[0].name not in _OF_PLACE]
        self._kinds: dict[int, list[Mismatch]] = {}

    def obstacles(self, element: ComputingElement) -> list[Mismatch]:
        """Return every clause that keeps the job from an element; empty exactly if `reach` finds none."""
        pilot = pilot_at(element, self._vo)
        failing = [
            Mismatch(way.name, way.detail(part, element))
            for way, part in self._ways
            if not way.holds(part, element)
        ]
        of_kind = self._kinds.get(pilot.kind)
        if of_kind is None:
            of_kind = self._kinds[pilot.kind] = failing_parts(self._by_kind, pilot.resource)
        if pilot.refused:
            failing.append(pilot.refused)
        return failing + of_kind + failing_parts(self._by_name, pilot.resource)


class ProspectivePilot(NamedTuple):
    """The resource of a generic pilot at an element, and why it would be refused, if so."""

    resource: Resource
    refused: Mismatch | None
    kind: int
    """A number that is equal for resources that differ only in site, element and ad."""


# Ads are repeated all the time and seldom change.
@lru_cache(maxsize=20_000)
def pilot_at(element: ComputingElement, vo: str) -> ProspectivePilot:
    """Return the resource of a generic pilot of a VO at an element."""
    resource = element.pilot_resource(vo=vo)
    return ProspectivePilot(resource, refusal(resource), _kind(plain(resource)))


@lru_cache(maxsize=20_000)
def _kind(_: Resource) -> int:
    return next(_KINDS)


_KINDS = itertools.count()


def gather(  # noqa: PLR0917 - what waits, what there is, and what bounds it
    waiting: Iterable[QueuedWork],
    elements: Sequence[ComputingElement],
    leeway: LimitHeadroom | None = None,
    avoided: Mapping[CeId, Avoided] = _NOWHERE,
    hosts_of: HostsOf | None = None,
    private_groups: PrivateGroups = NOBODY,
) -> Demand:
    """Group waiting work by kind, and find where each may run. Elements with faulty ads serve nothing."""
    leeway = leeway or LimitHeadroom()
    jobs: Counter[Requirements] = Counter()
    groups: dict[Requirements, dict[str, None]] = {}
    asked, required = asked_of_jobs(elements), required_of_jobs(elements)
    for queue in waiting:
        if queue.jobs > 0:
            kind = kind_of(
                queue.requirements, asked, required, by_owner=leeway.by_owner, private_groups=private_groups
            )
            jobs[kind] += queue.jobs
            groups.setdefault(kind, {})[queue.requirements.owner_group] = None
    demand = Demand([], [], [Counter() for _ in elements])
    sound = {number: element for number, element in enumerate(elements) if element.fault() is None}
    for requirements, number in jobs.items():
        _add_kind(demand, requirements, number, sound, private_groups.pilot_owner(requirements))
    demand.kinds[:] = [
        kind._replace(owner_groups=tuple(itertools.islice(groups[kind.requirements], GROUPS)))
        for kind in demand.kinds
    ]
    if hosts_of:
        demand.kinds[:] = [_classed(kind, elements, hosts_of) for kind in demand.kinds]
    if avoided or leeway:
        demand.kinds[:] = [_open(kind, elements, leeway, avoided) for kind in demand.kinds]
    demand.kinds[:] = [_ranked(kind, elements) for kind in demand.kinds]
    return demand


def kind_of(
    requirements: Requirements,
    asked: frozenset[str],
    required: frozenset[str],
    *,
    by_owner: bool = False,
    private_groups: PrivateGroups = NOBODY,
) -> Requirements:
    """Return the work's requirements without what nothing uses: of a job's own attributes all but those in `asked`.

    Its owner is left out as well, unless limits or expressions may use it: its own expressions, or sites'
    requirements, which use `required`.
    """
    seen = without_unseen(requirements, asked)
    tells = seen.requirements or seen.rank or not _WHOSE.isdisjoint(required)
    if tells or is_canary(seen):
        return seen
    seen = replace(seen, certificate_subject="", fqans=())
    if by_owner:
        return seen
    if private_groups.concern(seen):
        shared = (seen.vo, seen.owner_group) in private_groups.sharing
        return replace(seen, owner="") if shared else seen
    return replace(seen, owner="", owner_group="")


def _open(
    kind: WorkKind,
    elements: Sequence[ComputingElement],
    leeway: LimitHeadroom,
    avoided: Mapping[CeId, Avoided],
) -> WorkKind:
    """Return a kind of work with the elements where it may run now."""
    shut = {
        number: found
        for number in kind.elements
        if (found := avoided.get(elements[number].ce_id))
        and not (found.canaries and is_canary(kind.requirements))
    }
    open_ = tuple(number for number in kind.elements if number not in shut)
    keys = {number: leeway.keys(kind.requirements, elements[number]) for number in open_}
    said = {number: each for number, each in keys.items() if each}
    return kind._replace(elements=open_, keys=said, avoided={**kind.avoided, **shut})


def _classed(kind: WorkKind, elements: Sequence[ComputingElement], hosts_of: HostsOf) -> WorkKind:
    """Return a kind of work with its pilot classes, without the elements where no pilots are sent for it now."""
    wanted = {number: with_unknown_disk(kind.requirements, elements[number]) for number in kind.elements}
    found = {number: hosts_of(each, elements[number]) for number, each in wanted.items() if each.requirements}
    if not found:
        return kind
    shut = {number: each for number, each in found.items() if isinstance(each, Avoided)}
    return kind._replace(
        elements=tuple(number for number in kind.elements if number not in shut),
        hosts={number: each for number, each in found.items() if isinstance(each, PilotClass)},
        avoided=shut,
    )


def with_unknown_disk(requirements: Requirements, element: ComputingElement) -> Requirements:
    """Return requirements that include the disk at elements whose ads do not state theirs: only pilots there can measure it.

    So one pilot goes first, as for all that only a node can tell, and then as many as find work.
    """
    if not requirements.min_disk_mb or element.disk_mb:
        return requirements
    terms = [
        requirements.requirements and f"({requirements.requirements})",
        f"other.freedisk >= {requirements.min_disk_mb}",
    ]
    return replace(requirements, requirements=" && ".join(filter(None, terms)))


def _ranked(kind: WorkKind, elements: Sequence[ComputingElement]) -> WorkKind:
    if not kind.requirements.rank:
        return kind
    vo = kind.requirements.vo
    ranks = {n: job_rank(kind.requirements, pilot_at(elements[n], vo).resource) or 0.0 for n in kind.elements}
    return kind._replace(ranks=ranks)


def asked_of_jobs(elements: Iterable[ComputingElement]) -> frozenset[str]:
    """Return the names of the jobs' attributes that elements' expressions use, in lower case."""
    return frozenset[str]().union(*(site_ad(ad_of(each)).asks for each in elements))


def required_of_jobs(elements: Iterable[ComputingElement]) -> frozenset[str]:
    """Return the names of the jobs' attributes that elements' requirements use, in lower case."""
    return frozenset[str]().union(*(site_ad(ad_of(each)).required for each in elements))


def _add_kind(
    demand: Demand,
    requirements: Requirements,
    jobs: int,
    elements: dict[int, ComputingElement],
    owner: PilotOwner | None = None,
) -> None:
    # Most lists of sites name few of very many sites: the other elements are judged only if these fail too.
    near, far = _by_site(requirements, elements)
    verdicts = {number: reach(requirements, elements[number], owner) for number in near}
    reached = tuple(number for number, mismatch in verdicts.items() if mismatch is None)
    if not reached:
        verdicts |= {number: reach(requirements, elements[number], owner) for number in far}
        far = []
    for number, mismatch in verdicts.items():
        if mismatch:
            demand.unreached[number][mismatch.clause] += jobs
    for number in far:
        demand.unreached[number]["site"] += jobs
    if reached:
        demand.kinds.append(WorkKind(requirements, jobs, slots_needed(requirements), reached, private=owner))
    else:
        reasons = _reasons([mismatch for mismatch in verdicts.values() if mismatch])
        demand.unservable.append(Unservable(requirements=requirements, jobs=jobs, reasons=reasons))


def _by_site(
    requirements: Requirements, elements: dict[int, ComputingElement]
) -> tuple[list[int], list[int]]:
    """Return the elements at the sites that the work may run at, and the others."""
    sites = folded(requirements.sites)
    near = [number for number, element in elements.items() if not sites or element.site.casefold() in sites]
    return near, [number for number in elements if number not in near] if sites else []


def _reasons(mismatches: list[Mismatch]) -> tuple[str, ...]:
    """Return one line for each clause: how many elements fail there, and some of the cases."""
    if not mismatches:
        return ("no computing element is advertised",)
    by_clause: dict[str, list[str]] = {}
    for mismatch in mismatches:
        by_clause.setdefault(mismatch.clause, []).append(mismatch.detail)
    return tuple(
        f"{clause}, at {len(details)} computing elements: " + "; ".join(sorted(set(details))[:_EXAMPLES])
        for clause, details in by_clause.items()
    )
