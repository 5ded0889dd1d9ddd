"""The ads of both sides: what a job tells to the expressions of sites, and a resource with its element's ad to those of jobs.

**A job's ad** is what its task queue says - owner, group, VO, type, CPU segment, processors, memory, tags, by the names in
`JOB` - and the attributes of its own. All are values, and all are of the queue's key, so that jobs of a queue are one to sites.

**A resource's ad** is the one that its computing element advertises, and above it what the pilot says of itself, by the names in
`RESOURCE`. It may have expressions that look at the job.

What an ad demands of its own counts - `CurMatches`, `JobsMatchedSinceLastAdvertisement` - is parted from its requirements before it is
stored (`wms.taskqueue.allowance`), and is no question of fit.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from wms.classad.ad import Ad, Given
from wms.classad.expression import Expression
from wms.classad.folding import constant
from wms.classad.tree import Literal
from wms.classad.value import ERROR
from wms.errors import Rejected
from wms.site import Resource, ad_of
from wms.taskqueue.grouping import Requirements, processors_needed

_KEPT = 4_096

Seen: TypeAlias = tuple[Any, ...]
"""What those see of an ad who look at some of its attributes: equal where the values are."""


# --- jobs ------------------------------------------------------------------------------------------------------------


class Words(NamedTuple):
    """What of a task queue's key the expressions of sites may look at."""

    owner: str
    owner_group: str
    vo: str
    setup: str
    job_types: tuple[str, ...]
    cpu_segment: int
    processors: int
    min_ram_mb: int
    tags: tuple[str, ...]
    attributes: str
    """The canonical text of the job's own."""


def words(asked: Requirements) -> Words:
    """Return what a queue's jobs tell."""
    return Words(
        asked.owner, asked.owner_group, asked.vo, asked.setup, asked.job_types, asked.cpu_segment,
        processors_needed(asked), asked.min_ram_mb, asked.tags, asked.attributes,
    )  # fmt: skip


JOB: Mapping[str, tuple[str, Callable[[Words], Given]]] = {
    name.lower(): (name, value)
    for name, value in {
        "Owner": lambda w: w.owner,
        "OwnerGroup": lambda w: w.owner_group,
        "VirtualOrganisation": lambda w: w.vo,
        "Setup": lambda w: w.setup,
        "JobType": lambda w: w.job_types[0] if w.job_types else None,
        "CPUTime": lambda w: w.cpu_segment,
        "NumberOfProcessors": lambda w: w.processors,
        "MinRAM": lambda w: w.min_ram_mb or None,
        "ImageSize": lambda w: 1024 * w.min_ram_mb or None,
        "Tags": lambda w: w.tags,
    }.items()
}
"""The attributes of a job's ad: CPU time in seconds, raised to its segment; memory in MB, the size of its image in KiB."""


def told(job: Words, names: frozenset[str]) -> Seen:
    """Return what a job tells to who looks at these names, in lower case."""
    filled = tuple(JOB[name][1](job) for name in sorted(names & JOB.keys()))
    return (*filled, _own(job.attributes).view(names)) if job.attributes else filled


@lru_cache(maxsize=_KEPT)
def job_ad(job: Words, names: frozenset[str] | None = None) -> Ad:
    """Return a job's ad, or as much of it as is looked at by who looks at these names."""
    own = _own(job.attributes)
    filled = {name: value(job) for key, (name, value) in JOB.items() if names is None or key in names}
    said = {name: own.expression(name) for name in own.names if names is None or name.lower() in names}
    try:
        return Ad.of({name: value for name, value in (filled | said).items() if value is not None})
    except Rejected:
        return NOTHING  # lists of tags longer than any expression may look at


@lru_cache(maxsize=_KEPT)
def _own(attributes: str) -> Ad:
    return Ad.parse(attributes) if attributes else NOTHING


@lru_cache(maxsize=16_384)
def wish(text: str, job: Words) -> Expression:
    """Return a job's expression, bound to its ad: it looks at the resource alone."""
    expression = Expression.parse(text)
    own = expression.own | expression.bare
    try:
        return job_ad(job, own).bind(expression) if own else expression
    except Rejected:
        return Expression(Literal(ERROR))  # it grew too large: never true


# --- resources -------------------------------------------------------------------------------------------------------


RESOURCE: Mapping[str, tuple[str, Callable[[Resource], Given]]] = {
    name.lower(): (name, value)
    for name, value in {
        "Site": lambda r: r.site or None,
        "GridCE": lambda r: r.grid_ce or None,
        "Setup": lambda r: r.setup or None,
        "PilotType": lambda r: r.pilot_type or None,
        "CPUTime": lambda r: r.cpu_time,
        "MaxRAM": lambda r: r.memory_mb or None,
        "NumberOfProcessors": lambda r: r.processors,
        "Platforms": lambda r: r.platforms or None,
        "Tags": lambda r: r.tags,
    }.items()
}
"""What a resource's ad says of the resource itself: seconds left, MB of memory; no VO, since that is the job's own."""

Described: TypeAlias = tuple[tuple[str, Any], ...]


class SiteAd(NamedTuple):
    """The ad of a computing element."""

    attributes: Mapping[str, Expression]
    """As written, requirements and rank among them."""
    looks: frozenset[str]
    """The names of `RESOURCE` that its expressions look at, in lower case."""
    demands: bool
    """Whether it asks anything of a job, or would rather have one than another."""


NOTHING = Ad(())
_NO_AD = SiteAd({}, frozenset(), demands=False)


def advertised(
    attributes: Mapping[str, Any], expressions: Mapping[str, str], requirements: str, rank: str
) -> str:
    """Return the canonical text of an ad as an element advertises it, empty for nothing; raises Rejected for a faulty one."""
    texts = {**expressions, "Requirements": requirements, "Rank": rank}
    parsed = {name: Expression.parse(text, name) for name, text in texts.items() if text}
    return Ad.of({**attributes, **parsed}).text if attributes or parsed else ""


@lru_cache(maxsize=_KEPT)
def site_ad(text: str) -> SiteAd:
    """Return the ad of a computing element from its canonical text."""
    if not text:
        return _NO_AD
    ad = Ad.parse(text)
    attributes = {name: each for name in ad.names if (each := ad.expression(name))}
    growing = [each.names for each in attributes.values() if not constant(each.tree)]
    looks = frozenset(RESOURCE).intersection(frozenset[str]().union(*growing))
    rank = ad.rank
    demands = "requirements" in ad or (rank is not None and not constant(rank.tree))
    return SiteAd(attributes, looks, demands)


def described(resource: Resource, names: Iterable[str]) -> Described:
    """Return what a resource says of itself, by these names of `RESOURCE` in lower case."""
    values = ((name, RESOURCE[name][1](resource)) for name in names)
    return tuple(each for each in values if each[1] is not None)


def resource_ad(resource: Resource) -> Ad:
    """Return a resource's ad: its own description above the ad of its element."""
    return combined(ad_of(resource), described(resource, sorted(RESOURCE)))


@lru_cache(maxsize=_KEPT)
def combined(text: str, says: Described) -> Ad:
    """Return the ad of an element with what one resource there says of itself."""
    said = site_ad(text)
    own = {RESOURCE[name][0]: value for name, value in says}
    kept = {name: each for name, each in said.attributes.items() if name not in dict(says)}
    try:
        return Ad.of({**kept, **own})
    except Rejected:
        # A description longer than any expression may look at: what cannot be told whole is not trusted.
        return Ad.of({"Requirements": ERROR})
