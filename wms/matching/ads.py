"""ClassAds of both sides: a job's ad, read by expressions of sites, and a resource's ad, read by expressions of jobs.

**A job's ad** holds the attributes of its task queue under the names in `JOB`: owner, group, VO, type, CPU segment,
processors, memory and tags. The job's own attributes are added. All are values and all belong to the queue's key. So the
expressions of sites cannot distinguish two jobs of one queue.

**A resource's ad** has three layers. The lowest is the ad that its computing element advertises. Above it is the pilot's
report on its node. On top are the resource's own fields, under the names in `RESOURCE`. Its expressions may reference the job.

A pilot that is *yet to be sent* is known only in part. Attributes that its site forwards to the batch system can still be
requested, and attributes that pilots measure and the ad lacks are still to be found out. Planning asks whether such a pilot
*could* run a job. Matching asks for the ad of a running pilot, where a missing attribute is undefined and meets no requirement.

A site's conditions on its own counters, `CurMatches` and `JobsMatchedSinceLastAdvertisement`, are not part of its requirements.
They are the rule of its element (`wms.matching.ad_limits`) and do not decide whether a job fits.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from wms.bounded_cache import BoundedCache
from wms.bounds import Names
from wms.classad.ad import Ad, Given
from wms.classad.expression import Expression
from wms.classad.folding import constant
from wms.classad.reduce import Sketch, own_part, sketch
from wms.classad.tree import Literal
from wms.classad.value import ERROR
from wms.errors import Rejected
from wms.matching.grouping import Requirements, processors_needed
from wms.matching.node_facts import IN_OWN_WORDS, MEASURED, PLACEHOLDER, POLICIES
from wms.site import Resource, ad_of, forwards_of

_KEPT = 4_096

Seen: TypeAlias = tuple[Any, ...]
"""The values of an ad for some attribute names, as a hashable key; two are equal if all values are equal."""


# --- jobs ------------------------------------------------------------------------------------------------------------


class JobAttributes(NamedTuple):
    """The attributes of a task queue's jobs that expressions of sites may reference. Memory and disk are in MB, times in seconds.

    Jobs of one queue have the same values.
    """

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
    """The canonical text of an ad with the job's own attributes; empty if it has none."""
    max_ram_mb: int = 0
    min_disk_mb: int = 0
    certificate_subject: str = ""
    fqans: tuple[str, ...] = ()


def job_attributes(asked: Requirements) -> JobAttributes:
    """Return those requirements of a queue, and its owner, that expressions of sites may reference."""
    return JobAttributes(
        asked.owner, asked.owner_group, asked.vo, asked.setup, asked.job_types, asked.cpu_segment,
        processors_needed(asked), asked.min_ram_mb, asked.tags, asked.attributes, asked.max_ram_mb, asked.min_disk_mb,
        asked.certificate_subject, asked.fqans,
    )  # fmt: skip


JOB: Mapping[str, tuple[str, Callable[[JobAttributes], Any]]] = {
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
        "MaxRAM": lambda w: w.max_ram_mb or None,
        "MinDisk": lambda w: w.min_disk_mb or None,
        "Tags": lambda w: w.tags,
        "CertificateSubject": lambda w: w.certificate_subject or None,
        "VOMS_FQAN": lambda w: next(iter(w.fqans), None),
        "VOMS_FQANs": lambda w: w.fqans or None,
    }.items()
}
"""The attributes of a job's ad, by name in lower case: the name as written in ads, and a function that computes the value from `JobAttributes`.

CPU time is in seconds, raised to its segment; memory and disk are in MB, `ImageSize` in KiB. `VOMS_FQAN` is the primary FQAN, as in
gLite; `VOMS_FQANs` are all of them.
"""

CREDENTIALS = frozenset({"certificatesubject", "voms_fqan", "voms_fqans"})
"""The job attributes, in lower case, that come from the user's token, besides owner, group and VO."""


def job_values(job: JobAttributes, names: frozenset[str]) -> Seen:
    """Return the values of a job's ad for the given attribute names, which are in lower case, as a hashable key."""
    filled = tuple(JOB[name][1](job) for name in sorted(names & JOB.keys()))
    return (*filled, _own(job.attributes).view(names)) if job.attributes else filled


def job_value(job: JobAttributes, name: str) -> Hashable:
    """Return the value of a job's ad for one attribute name in lower case, as a hashable that is equal for equal values."""
    own = _own(job.attributes).view(frozenset({name})) if job.attributes else _NO_ANSWER
    return (JOB[name][1](job), own) if name in JOB else own


_NO_ANSWER = (None,)


@lru_cache(maxsize=_KEPT)
def job_ad(job: JobAttributes, names: frozenset[str] | None = None) -> Ad:
    """Return the ClassAd of a job; with `names`, in lower case, only these attributes."""
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


LONG_TEXT = 2_048
"""The number of characters above which an expression is long.

Few long expressions are cached, as a parsed one takes a hundred times more memory.
"""
KEPT_LONG = 128


def wish(text: str, job: JobAttributes) -> Expression:
    """Parse the text of a job's expression and fill in the job's own values. The result references only the resource."""
    return _wish(text, job) if len(text) <= LONG_TEXT else _long_wish(text, job)


def bound_to_job(expression: Expression, job: JobAttributes) -> Expression:
    """Return a job's expression with the job's own values filled in. If it then exceeds a size limit, return the literal ERROR."""
    own = expression.own | expression.bare
    try:
        return job_ad(job, own).bind(expression) if own else expression
    except Rejected:
        return Expression(Literal(ERROR))  # it grew too large: never true


def _parsed_wish(text: str, job: JobAttributes) -> Expression:
    return bound_to_job(Expression.parse(text), job)


_wish = lru_cache(maxsize=16_384)(_parsed_wish)
_long_wish = lru_cache(maxsize=KEPT_LONG)(_parsed_wish)


def without_unseen(asked: Requirements, names: frozenset[str]) -> Requirements:
    """Return requirements without those attributes of the job that no expression references.

    `names` are the names in lower case that the expressions of sites reference. Names in the job's own requirements and rank count as
    well.
    """
    if not asked.attributes:
        return asked
    own = [Expression.parse(text) for text in (asked.requirements, asked.rank) if text]
    seen = frozenset(names.union(*(each.own | each.bare for each in own)) - JOB.keys())
    return replace(asked, attributes=_only(asked.attributes, seen) if seen else "")


@lru_cache(maxsize=16_384)
def _only(attributes: str, names: frozenset[str]) -> str:
    ad = _own(attributes)
    kept = {name: ad.expression(name) for name in ad.names if name.lower() in names}
    return Ad.of(kept).text if kept else ""


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
        "FreeDisk": lambda r: r.disk_mb or None,
        "NumberOfProcessors": lambda r: r.processors,
        "Platforms": lambda r: r.platforms or None,
        "Tags": lambda r: r.tags,
    }.items()
}
"""The attributes of a resource's ad that come from its fields, by name in lower case: the name as in ads, and a function for the value.

CPU time left is in seconds, memory and disk are in MB. There is no VO among them, since `VirtualOrganisation` is an attribute of the
job.
"""

Described: TypeAlias = tuple[tuple[str, Any], ...]


class SiteAd(NamedTuple):
    """The parsed ad of a computing element, and the attribute names that its expressions reference."""

    attributes: Mapping[str, Expression]
    """The attributes of the ad by name in lower case, its requirements and rank among them."""
    looks: frozenset[str]
    """All names that its expressions reference, in lower case."""
    asks: frozenset[str]
    """The job attributes that its expressions other than its rank may reference, in lower case."""
    demands: bool
    """Whether the ad has requirements of jobs, or a rank that is not constant."""
    required: frozenset[str] = frozenset()
    """The job attributes, in lower case, on which the ad's requirements can depend: named there, or in attributes of the ad used there."""


NOTHING = Ad(())
_NO_AD = SiteAd({}, frozenset(), frozenset(), demands=False)


def advertised(
    attributes: Mapping[str, Any], expressions: Mapping[str, str], requirements: str, rank: str
) -> str:
    """Return the canonical text of a computing element's ad, from its values, expressions, requirements and rank.

    The text is empty if there are none. Raise Rejected for malformed expressions.
    """
    texts = {**expressions, "Requirements": requirements, "Rank": rank}
    parsed = {name: Expression.parse(text, name) for name, text in texts.items() if text}
    if not (attributes or parsed):
        return ""
    ad = Ad.of({**attributes, **parsed})
    _keep(ad)
    return ad.text


def site_ad(text: str) -> SiteAd:
    """Return the parsed ad of a computing element from its canonical text; an ad without attributes for an empty text."""
    return (_site_ads.get(text) or _keep(Ad.parse(text))) if text else _NO_AD


_site_ads = BoundedCache[str, SiteAd](_KEPT)
"""A cache of parsed ads, by their canonical text.

A process that has just composed an ad is likely to need it parsed next.
"""


def _keep(ad: Ad) -> SiteAd:
    found = _site_ads[ad.text] = _site_ad(ad)
    return found


_REQUIREMENTS = frozenset({"requirements"})
_NOT_KNOWN = Literal(PLACEHOLDER)


def _site_ad(ad: Ad) -> SiteAd:
    attributes = {name.lower(): _canonical(each) for name in ad.names if (each := ad.expression(name))}
    growing = {name: each for name, each in attributes.items() if not constant(each.tree)}
    looks = _union(each.names for each in growing.values())
    asks = _union(each.other | each.bare for name, each in growing.items() if name != "rank")
    rank = ad.rank
    demands = "requirements" in ad or (rank is not None and not constant(rank.tree))
    reached = _reached(_REQUIREMENTS, attributes, {})
    required = _union(each.other | each.bare for name, each in growing.items() if name in reached)
    return SiteAd(attributes, looks, asks, demands, required)


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)


def _canonical(said: Expression) -> Expression:
    """Return an attribute's expression in the form that it has when it is parsed from the ad's canonical text."""
    return said if constant(said.tree) else Expression.parse(said.text)


def described(resource: Resource, names: frozenset[str] | None = None) -> Described:
    """Return the attributes that a resource reports of itself and of its node; with `names`, in lower case, only these."""
    own = {name: value for name, of in _fields(names) if (value := of(resource)) is not None}
    if not resource.node:
        return tuple(own.items())
    node = [each for each in resource.node if each[0] not in own and (names is None or each[0] in names)]
    return (*own.items(), *node)


# Each request of a pilot asks for them, and few sets of names are looked at.
@lru_cache(maxsize=1_024)
def _fields(names: frozenset[str] | None) -> tuple[tuple[str, Callable[[Resource], Given]], ...]:
    looked = RESOURCE.keys() if names is None else RESOURCE.keys() & names
    return tuple((name, RESOURCE[name][1]) for name in sorted(looked))


def resource_ad(resource: Resource, names: frozenset[str] | None = None) -> Ad:
    """Return the ClassAd of a resource, in which its own description overrides the ad of its computing element.

    With `names` in lower case, only these attributes and those that they reference are included.
    """
    return combined(ad_of(resource), described(resource), names)


def resource_sketch(resource: Resource, names: frozenset[str] | None = None) -> Sketch | None:
    """Return the known part of the ad that a pilot not yet sent would have; None if the resource is that of a running pilot."""
    forwards = forwards_of(resource)
    return None if forwards is None else sketched(resource_ad(resource, names), forwards)


@lru_cache(maxsize=_KEPT)
def sketched(ad: Ad, forwards: Names) -> Sketch:
    """Return a sketch of the ad that a pilot not yet sent would have: an ad, with the names of attributes that are still unknown.

    Unknown are the attributes that the site forwards to the batch system (`forwards`), and those that only a pilot can measure.
    """
    unsaid = MEASURED | POLICIES if forwards else MEASURED
    return sketch(
        ad, (*forwards, *(each for each in unsaid if each not in ad or ad.tree(each) == _NOT_KNOWN))
    )


@lru_cache(maxsize=_KEPT)
def open_requirements(ad: Ad, known: Sketch) -> Expression | None:
    """Return an ad's requirements on jobs with known values filled in, if they reference attributes unknown in its sketch; else None."""
    required = ad.expression("requirements")
    if required is None:
        return None
    left = own_part(required, known)
    return left if left is not None and left.own else None


@lru_cache(maxsize=_KEPT)
def combined(text: str, says: Described, names: frozenset[str] | None = None) -> Ad:
    """Return a computing element's ad (its text) combined with the description that one resource there gives of itself.

    With `names` in lower case, only these attributes and those that they reference are included.
    """
    attributes = site_ad(text).attributes
    own: dict[str, Given] = {
        name: value for name, value in says if name not in IN_OWN_WORDS or name not in attributes
    }
    wanted = own.keys() | attributes.keys() if names is None else _reached(names, attributes, own)
    said = {
        RESOURCE[name][0] if name in RESOURCE else name: value
        for name, value in own.items()
        if name in wanted
    }
    try:
        return Ad.of(
            {name: attributes[name] for name in attributes if name in wanted and name not in own} | said
        )
    except Rejected:
        # A description longer than any expression may look at: what cannot be told whole is not trusted.
        return Ad.of({"Requirements": ERROR})


def _reached(
    names: frozenset[str], attributes: Mapping[str, Expression], own: Mapping[str, Given]
) -> frozenset[str]:
    """Return `names`, and all names that the attributes of these names reference in their own ad, directly or through other attributes."""
    found, new = names, names
    while new:
        looked = (attributes[name].names for name in new if name in attributes and name not in own)
        new = _union(looked) - found
        found |= new
    return found
