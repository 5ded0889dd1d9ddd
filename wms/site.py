"""Sites and what they offer: the resource a job agent describes when it asks for work, and the ad of a computing element.

Values that stand for sets (tags, platforms, ...) are kept sorted and distinct, so that equal descriptions are equal values.
The word "any", in any case, or an absent value means that the attribute is not looked at. Names are compared without regard
to case, as in DIRAC's database; who somebody is (setup, VO, group, owner) is compared as it is written.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated, NamedTuple, TypeAlias

from msgspec import Meta, Struct, structs
from msgspec.structs import force_setattr

from wms.bounds import (
    Count,
    CpuTime,
    Explanation,
    Expression,
    Load,
    LongText,
    Measure,
    Megabytes,
    Name,
    Names,
    Whole,
)
from wms.ids import CeId

WILDCARD = "any"
PRIVATE, GENERIC = "private", "generic"
"""The two types of pilots that follow from whom a pilot serves; other types are what sites call theirs."""
MAX_PROCESSORS = 1024

Value: TypeAlias = bool | Whole | Measure | Explanation | Names
Told: TypeAlias = Annotated[tuple[tuple[Name, Value], ...], Meta(max_length=100)]
"""Attributes of an ad and their values."""


def is_wild(value: str) -> bool:
    """Tell whether a single value says nothing: absent, or "any" in any case."""
    return not value or value.casefold() == WILDCARD


def distinct(values: Iterable[str]) -> tuple[str, ...]:
    """Return the set of the non-empty values as a sorted tuple."""
    return tuple(sorted({value for value in values if value}))


def named(values: Iterable[str]) -> tuple[str, ...]:
    """Return the set of the values as a sorted tuple, empty when one of them is the wildcard."""
    names = distinct(values)
    return () if any(value.casefold() == WILDCARD for value in names) else names


@lru_cache(maxsize=65_536)
def folded(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return a set of names as names are compared."""
    return distinct(map(str.casefold, values))


_FEW = 8
# The same few sets come with every message; long ones are seldom twice the same, and would take the memory.
_few_distinct = lru_cache(maxsize=16_384)(distinct)
_few_named = lru_cache(maxsize=16_384)(named)


def canonical(struct: Struct, *, named_sets: Iterable[str], plain_sets: Iterable[str]) -> None:
    """Make the set-like fields of a struct under construction canonical, in place."""
    for rule, of_few, fields in ((named, _few_named, named_sets), (distinct, _few_distinct, plain_sets)):
        for field in fields:
            values = getattr(struct, field)
            if values:
                made = of_few(tuple(values)) if len(values) <= _FEW else rule(values)
                force_setattr(struct, field, made)


WHOLE_NODE = "WholeNode"
"""The tag of resources whose pilots have a node of their own, and of jobs that want one."""
_OF_NODES = re.compile(r"[1-9][0-9]{0,3}processors|multiprocessor|wholenode", re.IGNORECASE)


class OfferedTags(NamedTuple):
    """The tags that a resource has; "any" among those that it names stands for all but the ones that tell its processors."""

    tags: frozenset[str]
    is_any: bool

    def lacking(self, tags: Iterable[str]) -> list[str]:
        """Return those of some tags that it has not."""
        missing = [tag for tag in tags if tag.casefold() not in self.tags]
        return [tag for tag in missing if _OF_NODES.fullmatch(tag)] if missing and self.is_any else missing


@lru_cache(maxsize=16_384)
def offered_tags(tags: tuple[str, ...], processors: int) -> OfferedTags:
    """Return the tags of a resource that names these: 1Processors .. nProcessors with them, MultiProcessor if n > 1."""
    own = folded(tags)
    return OfferedTags(_processor_tags(processors).union(own), WILDCARD in own)


@lru_cache(maxsize=MAX_PROCESSORS)
def _processor_tags(processors: int) -> frozenset[str]:
    tags = {f"{n}processors" for n in range(1, processors + 1)}
    return frozenset(tags | {"multiprocessor"} if processors > 1 else tags)


def demanded_tags(required_tags: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tags that a resource requires of jobs; none where it requires "any"."""
    return () if WILDCARD in folded(required_tags) else required_tags


class Resource(Struct, frozen=True, kw_only=True, cache_hash=True):
    """What asks for work: a place where one more job could start now.

    `cpu_time` is in seconds of the reference processor. `memory_mb` 0 says nothing about memory and so fits only jobs that
    ask for none: a job must not be killed for memory that nobody promised. `disk_mb` 0 says nothing about the disk, which is
    then not looked at: few ads tell it, and every pilot measures it. `platforms` are all those it can run. `job_types` empty accepts all. A generic pilot serves every group of
    its VO; a private one its group, and there only its owner unless the group shares its jobs.
    """

    setup: Name
    vo: Name
    cpu_time: CpuTime
    site: Name = ""
    grid_ce: Name = ""
    pilot_type: Name = ""
    platforms: Names = ()
    job_types: Names = ()
    banned_job_types: Names = ()
    memory_mb: Megabytes = 0
    disk_mb: Megabytes = 0
    processors: Count = 1
    tags: Names = ()
    required_tags: Names = ()
    generic: bool = True
    owner: Name = ""
    owner_group: Name = ""
    job_sharing: bool = False
    unfit: Names = ()
    """Requirements that the pilot found its node not to do for, by `wms.matching.node_facts.wish`."""
    node: Told = ()
    """What the pilot knows of its own node, above what its element's ad says of all hosts; names in lower case, in order."""

    def __post_init__(self) -> None:
        canonical(
            self,
            named_sets=("platforms", "job_types"),
            plain_sets=("banned_job_types", "tags", "required_tags", "unfit"),
        )

    def offers(self, tag: str) -> bool:
        """Tell whether the resource has a tag, those of its processors included."""
        return not self.lacking((tag,))

    def lacking(self, tags: Iterable[str]) -> list[str]:
        """Return those of some tags that the resource has not."""
        return offered_tags(self.tags, self.processors).lacking(tags)

    def fault(self) -> str | None:
        """Return what is wrong with the description itself, whatever the jobs; None when nothing is."""
        if not 1 <= self.processors <= MAX_PROCESSORS:
            return f"processors must be 1 to {MAX_PROCESSORS}, not {self.processors}"
        if min(self.cpu_time, self.memory_mb, self.disk_mb) < 0:
            return "CPU time, memory and disk must not be negative"
        if self.generic and not self.vo:
            return "a generic pilot must name its VO"
        if not self.generic and not (self.owner_group and (self.owner or self.job_sharing)):
            return "a private pilot must name its owner and group"
        missing = self.lacking(demanded_tags(self.required_tags))
        if missing:
            return f"RequiredTag {', '.join(missing)} not among the resource's own tags"
        return None


class ComputingElement(Struct, frozen=True, kw_only=True, cache_hash=True):
    """The ad of a computing element: what pilots sent there would offer, how many it takes, and what it holds now.

    `slots`, `cores`: all that this CE gives us. A pilot brings `slots_per_pilot` places for jobs on `cores_per_pilot`
    processors, `memory_mb` MB and `disk_mb` MB of disk. `max_*` 0: no such limit is stated. `vos` empty: open to all.
    `max_jobs` and `max_submitting_jobs` with the `current_*` counts are the SAM-Grid limits on jobs; `rule` is a ClassAd
    expression of the site's own in their place, over CurMatches, JobsMatchedSinceLastAdvertisement and whatever its ad says
    (`wms.matching.ad_limits`).
    """

    site: Name
    ce: Name
    slots: Count
    max_cpu_time: CpuTime
    setup: Name = ""
    dispatcher: Name = "local"
    grid_middleware: Name = ""
    submit_pools: Names = ()
    pilot_type: Name = ""
    platforms: Names = ()
    job_types: Names = ()
    vos: Names = ()
    cores: Count = 1
    memory_mb: Megabytes = 0
    disk_mb: Megabytes = 0
    tags: Names = ()
    required_tags: Names = ()
    slots_per_pilot: Count = 1
    cores_per_pilot: Count = 1
    max_pilots: Count = 0
    max_waiting_pilots: Count = 0
    max_jobs: Count = 0
    max_submitting_jobs: Count = 0
    current_jobs: Count = 0
    current_submitting_jobs: Count = 0
    rule: Expression = ""
    load: Load = 0.0
    """Processes that run or wait to run there, on average of the last minute: shown, never matched by."""

    def __post_init__(self) -> None:
        canonical(
            self,
            named_sets=("platforms", "job_types", "submit_pools", "vos"),
            plain_sets=("tags", "required_tags"),
        )

    @property
    def ce_id(self) -> CeId:
        """The name that it has among all elements."""
        return CeId(self.site, self.ce)

    @property
    def pilot_limit(self) -> int:
        """How many pilots it may hold at a time: as stated, else as many as its slots feed."""
        return self.max_pilots or -(-self.slots // self.slots_per_pilot)

    def fault(self) -> str | None:
        """Return what is wrong with the ad; None when nothing is."""
        if not self.site or not self.ce:
            return "an ad must name its site and computing element"
        if is_wild(self.site) or is_wild(self.ce):
            return f'"{WILDCARD}" is no name for a site or a computing element'
        if self.slots < 0 or self.max_cpu_time < 0:
            return "slots and CPU time must not be negative"
        if self.slots_per_pilot < 1:
            return "a pilot must bring at least one slot"
        if min(self.max_pilots, self.max_waiting_pilots, self.max_jobs, self.max_submitting_jobs) < 0:
            return "a limit must not be negative"
        return self.pilot_resource(vo="any VO").fault()

    def pilot_resource(self, *, vo: str) -> Resource:
        """Return the resource that a generic pilot of a VO, just started here, would describe."""
        return Resource(
            setup=self.setup,
            vo=vo,
            cpu_time=self.max_cpu_time,
            site=self.site,
            grid_ce=self.ce,
            pilot_type=self.pilot_type,
            platforms=self.platforms,
            job_types=self.job_types,
            memory_mb=self.memory_mb,
            disk_mb=self.disk_mb,
            processors=self.cores_per_pilot,
            tags=self.tags,
            required_tags=self.required_tags,
        )


class PilotOwner(NamedTuple):
    """Whose jobs a private pilot takes: one owner's, or with no owner a whole group's, which must share its jobs."""

    owner_group: str
    owner: str = ""

    @property
    def text(self) -> str:
        """Return it as lists show it: `alice@physics`, or the group alone."""
        return f"{self.owner}@{self.owner_group}" if self.owner else self.owner_group


def private(resource: Resource, owner: PilotOwner, *, job_sharing: bool) -> Resource:
    """Return what a private pilot offers where a generic one would offer this."""
    return structs.replace(
        resource, generic=False, owner=owner.owner, owner_group=owner.owner_group, job_sharing=job_sharing
    )


STARTING_SECONDS = 30.0
"""Of its life a pilot has used so much at most before it first asks for a job."""


# Ads come anew all the time, and doors stay what they are.
@lru_cache(maxsize=20_000)
def lasting(element: ComputingElement, pilot_seconds: float | None) -> ComputingElement:
    """Return an element as jobs see it through pilots that live so long: none promises a job more than it has left itself.

    `pilot_seconds` None: nobody said how long they live.
    """
    left = element.max_cpu_time if pilot_seconds is None else int(max(0.0, pilot_seconds - STARTING_SECONDS))
    return element if left >= element.max_cpu_time else structs.replace(element, max_cpu_time=left)


class AdvertisedResource(Resource, frozen=True, kw_only=True, cache_hash=True):
    """A resource, and the ClassAd of its computing element, as canonical text: who asks cannot say that itself.

    One that a pilot *would be* has `forwards`: that pilot could be asked for with a host of which these attributes, in lower
    case, are others than the ad says. A pilot that there is has None: it is as it is.
    """

    ad: LongText = ""
    forwards: Names | None = None


class AdvertisedElement(ComputingElement, frozen=True, kw_only=True, cache_hash=True):
    """A computing element, the ClassAd that goes with it, as canonical text, and what its site forwards to the batch system."""

    ad: LongText = ""
    forwards: Names = ()

    def pilot_resource(self, *, vo: str) -> Resource:
        """Return the resource that a pilot, asked for as a job needs it, would be."""
        return with_ad(super().pilot_resource(vo=vo), self.ad, self.forwards)


# The same few elements every second.
@lru_cache(maxsize=20_000)
def forwarding(element: ComputingElement, names: Names | None) -> ComputingElement:
    """Return an element whose site forwards these attributes to its batch system; None: it has none that is asked."""
    if names is None:
        return element
    return AdvertisedElement(**structs.asdict(element) | {"forwards": names})


def with_ad(resource: Resource, ad: str, forwards: Names | None = None) -> AdvertisedResource:
    """Return a resource with the ad of its element, whatever ad it had."""
    fields = structs.asdict(resource) | {"ad": ad, "forwards": forwards}
    return AdvertisedResource(**fields)


def as_it_is(resource: Resource, node: Told = ()) -> Resource:
    """Return a resource that a pilot would be as the one of a pilot that there is, on a node of which this is known."""
    if isinstance(resource, AdvertisedResource):
        return structs.replace(resource, forwards=None, node=node)
    return structs.replace(resource, node=node)


def without_ad(resource: Resource) -> Resource:
    """Return a resource as it describes itself."""
    fields = structs.asdict(resource)
    fields.pop("ad", None)
    fields.pop("forwards", None)
    return Resource(**fields)


def plain(resource: Resource) -> Resource:
    """Return a resource without names of its place and without an ad: equal for all of one kind."""
    return structs.replace(without_ad(resource), site="", grid_ce="")


def ad_of(described: Resource | ComputingElement) -> str:
    """Return the text of the ad that goes with a resource or an element; empty if none does."""
    return described.ad if isinstance(described, AdvertisedResource | AdvertisedElement) else ""


def forwards_of(described: Resource) -> Names | None:
    """Return what hosts could be asked for by, of a resource that a pilot would be; None of any other."""
    return described.forwards if isinstance(described, AdvertisedResource) else None
