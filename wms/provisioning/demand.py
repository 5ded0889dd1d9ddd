"""Demand: the waiting jobs grouped by kind, and the computing elements whose pilots could run each kind.

A pilot serves its whole VO, so task queues that differ only in owner are one kind of work.
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
"""The most mismatches that one reason lists as examples."""
_OF_PLACE = OF_NAMES.keys() | OF_ADS
"""The names of clauses about the element itself. Their result may differ between elements that are otherwise equal."""
_WHOSE = CREDENTIALS | {"owner", "ownergroup"}
"""The attributes of a job that identify its owner."""


class QueuedWork(Struct, frozen=True):
    """The requirements of a task queue, and how many jobs wait in it."""

    requirements: Requirements
    jobs: int


class Avoidance(NamedTuple):
    """Why an element gets no pilots for now, as a code for programs and a text for people."""

    code: Literal["LIMIT", "BACKOFF", "QUARANTINE", "BANNED", "DRAINING"]
    why: str
    canaries: bool = False
    """Whether pilots for canaries (small test jobs of the system) are still sent to the element."""
    serves: bool = False
    """Whether the pilots that are there, or on their way there, still count for the work: the element is only full for now."""


_NONE: Mapping[Any, Any] = {}

HostsOf: TypeAlias = Callable[[Requirements, ComputingElement], PilotClass | Avoidance | None]
"""A function that returns the class of pilots to send to an element for jobs with these requirements. It returns None for
pilots without special requests, or `Avoidance` if no pilots are sent for these jobs now."""


class WorkKind(NamedTuple):
    """Waiting jobs that the same pilots could run. Each job counts once, even if several elements could run it."""

    requirements: Requirements
    jobs: int
    """How many jobs of this kind wait."""
    processors: int
    """How many slots of a pilot one job needs."""
    elements: tuple[int, ...]
    """Where the jobs may run now: indexes in the list of elements that `gather` was given."""
    keys: Mapping[int, tuple[LimitKey, ...]] = _NONE
    """The keys of the limits that count jobs of this kind, by element index; elements without limits are missing."""
    avoided: Mapping[int, Avoidance] = _NONE
    """The elements, by index, where the jobs could run but that are avoided now, with the reason."""
    hosts: Mapping[int, PilotClass] = _NONE
    """The class of pilots to send for the jobs, by element index; an element is missing if pilots need no special requests."""
    ranks: Mapping[int, float] = _NONE
    """The value of the jobs' Rank expression by element index; empty without an expression."""
    owner_groups: tuple[str, ...] = ()
    """Some of the groups that own the jobs, as information for batch systems; no decision uses them."""
    private: PilotOwner | None = None
    """The owner or group whose private pilots are sent for the jobs; None: generic pilots are sent."""

    @property
    def served(self) -> tuple[int, ...]:
        """The indexes of the elements whose pilots take the jobs: where they may run now, and those that only get no further pilots."""
        return (*self.elements, *(number for number, found in self.avoided.items() if found.serves))


class Unservable(Struct, frozen=True, kw_only=True):
    """Waiting jobs that no advertised element can run, with the reasons. Owner and group are empty unless an expression reads them."""

    requirements: Requirements
    jobs: int
    """How many waiting jobs no advertised element can run."""
    reasons: tuple[str, ...]
    """A text for each clause (rule of the fit) that fails, with examples of elements."""


class Demand(NamedTuple):
    """All waiting work, by kind, and the jobs that no element can run.

    `unreached` counts, for each element, the jobs that may not run there, by the first clause that fails.
    """

    kinds: list[WorkKind]
    unservable: list[Unservable]
    unreached: list[Counter[str]]


class SendingClause(NamedTuple):
    """A clause on whether a pilot of the job's VO may be sent to an element. Other clauses, the matcher's, are about a pilot that has started."""

    name: str
    part: Callable[[Requirements], Hashable]
    holds: Callable[[Any, ComputingElement], bool]
    detail: Callable[[Any, ComputingElement], str]


def _middleware(element: ComputingElement) -> str:
    return element.grid_middleware or element.dispatcher


WAYS = (
    SendingClause(
        "VO",
        lambda r: r.vo,
        lambda vo, at: not at.vos or vo in at.vos,
        lambda vo, at: f"{at.ce} takes no pilots of VO {vo}",
    ),
    SendingClause(
        "submit pool",
        lambda r: folded(r.submit_pools),
        lambda pools, at: (
            not pools or not at.submit_pools or not set(pools).isdisjoint(folded(at.submit_pools))
        ),
        lambda pools, _: f"the job goes by {', '.join(pools)}",
    ),
    SendingClause(
        "grid middleware",
        lambda r: folded(r.grid_middlewares),
        lambda wanted, at: not wanted or _middleware(at).casefold() in wanted,
        lambda _, at: f"{at.ce} is reached by {_middleware(at)}",
    ),
)
"""The clauses that must hold before a pilot of the job's VO may be sent to an element."""


def reach(
    requirements: Requirements, element: ComputingElement, owner: PilotOwner | None = None
) -> Mismatch | None:
    """Return why a pilot sent to an element could not run the job; None if it could. Without an `owner` it is a generic pilot."""
    for way in WAYS:
        part = way.part(requirements)
        if not way.holds(part, element):
            return Mismatch(way.name, way.detail(part, element))
    pilot = element.pilot_resource(vo=requirements.vo)
    return fits(requirements, private(pilot, owner, job_sharing=not owner.owner) if owner else pilot)


def of_pilots_to_be(requirements: Requirements) -> Requirements:
    """Return the requirements without the wish for private pilots. Those can be sent to any element, so the wish excludes none."""
    if PRIVATE not in folded(requirements.pilot_types):
        return requirements
    return replace(requirements, pilot_types=())


class JobDemand:
    """The requirements of a job, prepared to be judged at many elements. Elements that differ only in name are judged once."""

    def __init__(self, requirements: Requirements, *, since: Requirements | None = None) -> None:
        """Prepare the requirements for `obstacles`; if `since` is given, only clauses that differ from it are judged."""
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
        """Return every clause by which a generic pilot at an element could not run the job. The list is empty if it could."""
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
    """The resource that a generic pilot would offer to the matcher if it was sent to an element."""

    resource: Resource
    refused: Mismatch | None
    """Why such a pilot would get no job at all; None if it could get some."""
    kind: int
    """A number that is equal for resources that differ only in site, element and ad."""


# Ads are repeated all the time and seldom change.
@lru_cache(maxsize=20_000)
def pilot_at(element: ComputingElement, vo: str) -> ProspectivePilot:
    """Return the resource that a generic pilot of a VO would have at an element."""
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
    avoided: Mapping[CeId, Avoidance] = _NONE,
    hosts_of: HostsOf | None = None,
    private_groups: PrivateGroups = NOBODY,
) -> Demand:
    """Group waiting jobs by kind, and find the elements where each kind may run. Elements with faulty ads are left out.

    `leeway` is the headroom of limits: how many more jobs they let start. `avoided` are elements that get no pilots. `hosts_of` returns the pilot
    class of work at an element. `private_groups` are the groups with private pilots.
    """
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
    """Return requirements without what no decision reads, so that more queues are equal and planned together.

    The job's own attributes in `asked` are kept; `required` are those that elements' requirements read. Owner and group are removed unless limits
    (`by_owner`), private pilots or expressions may read them.
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
    avoided: Mapping[CeId, Avoidance],
) -> WorkKind:
    """Return a kind of work without avoided elements. Those whose pilots serve it get the keys of the limits that apply to it."""
    shut = {
        number: found
        for number in kind.elements
        if (found := avoided.get(elements[number].ce_id))
        and not (found.canaries and is_canary(kind.requirements))
    }
    open_ = tuple(number for number in kind.elements if number not in shut)
    kind = kind._replace(elements=open_, avoided={**kind.avoided, **shut})
    keys = {number: leeway.keys(kind.requirements, elements[number]) for number in kind.served}
    return kind._replace(keys={number: each for number, each in keys.items() if each})


def _classed(kind: WorkKind, elements: Sequence[ComputingElement], hosts_of: HostsOf) -> WorkKind:
    """Return a kind of work with the pilot class for each element. Elements to which no pilots are sent for it now are left out."""
    wanted = {number: with_unknown_disk(kind.requirements, elements[number]) for number in kind.elements}
    found = {number: hosts_of(each, elements[number]) for number, each in wanted.items() if each.requirements}
    if not found:
        return kind
    shut = {number: each for number, each in found.items() if isinstance(each, Avoidance)}
    return kind._replace(
        elements=tuple(number for number in kind.elements if number not in shut),
        hosts={number: each for number, each in found.items() if isinstance(each, PilotClass)},
        avoided=shut,
    )


def with_unknown_disk(requirements: Requirements, element: ComputingElement) -> Requirements:
    """Return requirements with the disk as an expression, for elements whose ads do not state it. Only a pilot there can measure it."""
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
    """Return the names, in lower case, of the job attributes that expressions in the ads of these elements may read."""
    return frozenset[str]().union(*(site_ad(ad_of(each)).asks for each in elements))


def required_of_jobs(elements: Iterable[ComputingElement]) -> frozenset[str]:
    """Return the names, in lower case, of the job attributes that requirements in the ads of these elements may read."""
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
    """Return the indices of elements at the sites where the work may run, and the indices of the other elements."""
    sites = folded(requirements.sites)
    near = [number for number, element in elements.items() if not sites or element.site.casefold() in sites]
    return near, [number for number in elements if number not in near] if sites else []


def _reasons(mismatches: list[Mismatch]) -> tuple[str, ...]:
    """Return one text for each failing clause: the number of elements that fail it, and some examples."""
    if not mismatches:
        return ("no computing element is advertised",)
    by_clause: dict[str, list[str]] = {}
    for mismatch in mismatches:
        by_clause.setdefault(mismatch.clause, []).append(mismatch.detail)
    return tuple(
        f"{clause}, at {len(details)} computing elements: " + "; ".join(sorted(set(details))[:_EXAMPLES])
        for clause, details in by_clause.items()
    )
