"""Descriptions of sites: the resource for which a job agent requests jobs, and the ad of a computing element.

Values that stand for sets (tags, platforms, ...) are kept sorted and distinct, so that equal descriptions are equal values.
The word "any", in any case, or an absent value means that the attribute is ignored. Names are compared without regard to
case, as in DIRAC's database. Identities (setup, VO, group, owner) are compared as they are written.
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
from wms.printed_text import one_line

WILDCARD = "any"
PRIVATE, GENERIC = "private", "generic"
"""The two pilot types that follow from a pilot's owner; sites define all other types."""
MAX_PROCESSORS = 1024

VALUE_LENGTH = 1_000
Value: TypeAlias = bool | Whole | Measure | Explanation | Names
Told: TypeAlias = Annotated[tuple[tuple[Name, Value], ...], Meta(max_length=100)]
"""Attributes and their values, as (name, value) pairs."""


def is_wild(value: str) -> bool:
    """Return whether a value stands for any value: it is empty, or "any" in any case."""
    return not value or value.casefold() == WILDCARD


def distinct(values: Iterable[str]) -> tuple[str, ...]:
    """Return the set of the non-empty values as a sorted tuple."""
    return tuple(sorted({value for value in values if value}))


def named(values: Iterable[str]) -> tuple[str, ...]:
    """Return the set of the values as a sorted tuple. It is empty if one of them is the wildcard "any"."""
    names = distinct(values)
    return () if any(value.casefold() == WILDCARD for value in names) else names


@lru_cache(maxsize=65_536)
def folded(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return a set of names in the form in which names are compared: case-folded, distinct and sorted."""
    return distinct(map(str.casefold, values))


_FEW = 8
# The same few sets come with every message; long ones are seldom twice the same, and would take the memory.
_few_distinct = lru_cache(maxsize=16_384)(distinct)
_few_named = lru_cache(maxsize=16_384)(named)


def canonical(struct: Struct, *, named_sets: Iterable[str], plain_sets: Iterable[str]) -> None:
    """Sort the fields of a struct that hold sets, and remove duplicates, in place. It is called while the struct is constructed.

    `named_sets` are the fields with names, in which "any" stands for all; `plain_sets` are the others.
    """
    for rule, of_few, fields in ((named, _few_named, named_sets), (distinct, _few_distinct, plain_sets)):
        for field in fields:
            values = getattr(struct, field)
            if values:
                made = of_few(tuple(values)) if len(values) <= _FEW else rule(values)
                force_setattr(struct, field, made)


def _safe(value: Value) -> Value:
    return one_line(value, VALUE_LENGTH) if isinstance(value, str) else value


WHOLE_NODE = "WholeNode"
"""The tag of resources whose pilots have a whole node, and of jobs that want one."""
CONTAINER = "Container"
"""The tag of resources whose nodes run containers, and of jobs that name an image. Elements declare it; each pilot drops it unless a trial
container ran on its node.
"""
PRIVATE_NETWORK = "PrivateNetwork"
"""The tag of resources whose nodes can run payloads without the node's network, and of jobs that want none and name no image. Elements declare
it; each pilot drops it unless a trial succeeded on its node.
"""
BOUND = "job:"
"""The prefix of the tag that binds a pilot to one job: `job:` and the id. Neither users nor sites may use such tags."""
_OF_ITSELF = re.compile(
    r"[1-9][0-9]{0,3}processors|multiprocessor|wholenode|container|privatenetwork|job:.*",
    re.IGNORECASE | re.DOTALL,
)


class OfferedTags(NamedTuple):
    """The tags of a resource, case-folded. With `is_any` it has every other tag too, except tags of processors and of a bound job."""

    tags: frozenset[str]
    is_any: bool

    def lacking(self, tags: Iterable[str]) -> list[str]:
        """Return those of `tags` that the resource does not have."""
        missing = [tag for tag in tags if tag.casefold() not in self.tags]
        return [tag for tag in missing if _OF_ITSELF.fullmatch(tag)] if missing and self.is_any else missing


@lru_cache(maxsize=16_384)
def offered_tags(tags: tuple[str, ...], processors: int) -> OfferedTags:
    """Return the tags that a resource offers: the given ones, 1Processors to nProcessors for its n `processors`, and MultiProcessor if n > 1."""
    own = folded(tags)
    return OfferedTags(_processor_tags(processors).union(own), WILDCARD in own)


@lru_cache(maxsize=MAX_PROCESSORS)
def _processor_tags(processors: int) -> frozenset[str]:
    tags = {f"{n}processors" for n in range(1, processors + 1)}
    return frozenset(tags | {"multiprocessor"} if processors > 1 else tags)


def demanded_tags(required_tags: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tags that a job must have to run on a resource with these `required_tags`; none if "any" is among them."""
    return () if WILDCARD in folded(required_tags) else required_tags


class Resource(Struct, frozen=True, kw_only=True, cache_hash=True, gc=False):
    """The description of a place where a pilot could start one more job now.

    `cpu_time` is in seconds of the reference processor. `memory_mb` 0 means unknown and fits only jobs that ask for none: a job must
    not be killed for memory that nobody promised. `disk_mb` 0 means unknown and is then ignored: few ads state it, and every pilot
    measures it. `platforms` are all that it can run. An empty `job_types` accepts all. A generic pilot serves every group of its VO.
    A private one serves its group, and in it only its owner unless the group shares its jobs.
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
    node: Told = ()
    """The attributes that the pilot measured on its node, with names in lower case, sorted. They override those of its element's ad."""

    def __post_init__(self) -> None:
        canonical(
            self,
            named_sets=("platforms", "job_types"),
            plain_sets=("banned_job_types", "tags", "required_tags"),
        )
        if any(isinstance(value, str) and not value.isprintable() for _, value in self.node):
            force_setattr(self, "node", tuple((name, _safe(value)) for name, value in self.node))

    def offers(self, tag: str) -> bool:
        """Return whether the resource has this tag. The tags of its processors count too."""
        return not self.lacking((tag,))

    def lacking(self, tags: Iterable[str]) -> list[str]:
        """Return those of `tags` that the resource does not have."""
        return offered_tags(self.tags, self.processors).lacking(tags)

    def fault(self) -> str | None:
        """Return what is wrong with the description itself, whatever the job; None if it is valid."""
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


class ComputingElement(Struct, frozen=True, kw_only=True, cache_hash=True, gc=False):
    """The ad of a computing element: the resources of pilots sent there, its limits, and its current counts.

    `slots`, `cores`: the total that this element gives to this system. A pilot brings `slots_per_pilot` places for jobs on `cores_per_pilot`
    processors, `memory_mb` MB and `disk_mb` MB of disk. `max_*` 0: no such limit is stated. `vos` empty: open to all. `max_jobs` and
    `max_submitting_jobs` with the `current_*` counts are the SAM-Grid limits on jobs. `rule` replaces them by a ClassAd expression of the site, over
    CurMatches, JobsMatchedSinceLastAdvertisement and other attributes of its ad (`wms.matching.ad_limits`).
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
    """The average number of processes that run or wait to run there in the last minute. It is displayed only, not used in matching."""

    def __post_init__(self) -> None:
        canonical(
            self,
            named_sets=("platforms", "job_types", "submit_pools", "vos"),
            plain_sets=("tags", "required_tags"),
        )

    @property
    def ce_id(self) -> CeId:
        """The element's unique id: its site and name."""
        return CeId(self.site, self.ce)

    @property
    def pilot_limit(self) -> int:
        """The most pilots that the element may have at a time: the stated number, or else as many as fill its slots."""
        return self.max_pilots or -(-self.slots // self.slots_per_pilot)

    def sized(self, slots: int) -> "ComputingElement":
        """Return the element as a pilot with `slots` slots sees it, with its part of the processors and memory; itself if that is usual."""
        usual = self.slots_per_pilot
        if slots == usual:
            return self
        return structs.replace(
            self,
            slots_per_pilot=slots,
            cores_per_pilot=max(1, self.cores_per_pilot * slots // usual),
            memory_mb=self.memory_mb * slots // usual,
        )

    def fault(self) -> str | None:
        """Return the fault of the ad; None if it is valid."""
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
        """Return the resource of a generic pilot of a VO that has just started here."""
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
    """The owner of a private pilot: one user, or with an empty `owner` a whole group, which must share its jobs."""

    owner_group: str
    owner: str = ""

    @property
    def text(self) -> str:
        """Return the owner as lists show it: `alice@physics`, or the group alone."""
        return f"{self.owner}@{self.owner_group}" if self.owner else self.owner_group


def private(resource: Resource, owner: PilotOwner, *, job_sharing: bool) -> Resource:
    """Return the resource of a private pilot of `owner`, made from that of a generic pilot. `job_sharing`: members of the group share their jobs."""
    return structs.replace(
        resource, generic=False, owner=owner.owner, owner_group=owner.owner_group, job_sharing=job_sharing
    )


STARTING_SECONDS = 30.0
"""Seconds of a pilot's lifetime that are set aside for its start, before its first match request."""


# Ads come anew all the time, and doors stay what they are.
@lru_cache(maxsize=20_000)
def lasting(element: ComputingElement, pilot_seconds: float | None) -> ComputingElement:
    """Return an element whose CPU time is limited by the time that a pilot has for jobs after its start.

    `pilot_seconds` is the lifetime of a pilot; None if it is not known.
    """
    left = element.max_cpu_time if pilot_seconds is None else int(max(0.0, pilot_seconds - STARTING_SECONDS))
    return element if left >= element.max_cpu_time else structs.replace(element, max_cpu_time=left)


class AdvertisedResource(Resource, frozen=True, kw_only=True, cache_hash=True):
    """A resource with the ClassAd of its computing element, as canonical text; pilots cannot set that ad themselves.

    `forwards` is set only for a pilot yet to be sent. It names, in lower case, the attributes that can be requested from the batch system. The host
    may differ from the ad in these. For a running pilot it is None.
    """

    ad: LongText = ""
    forwards: Names | None = None


class AdvertisedElement(ComputingElement, frozen=True, kw_only=True, cache_hash=True):
    """A computing element with its ClassAd as canonical text, and the names of attributes that its site forwards to the batch system as requests."""

    ad: LongText = ""
    forwards: Names = ()

    def pilot_resource(self, *, vo: str) -> Resource:
        """Return the resource of a pilot yet to be sent, which could still be requested with other attributes."""
        return with_ad(super().pilot_resource(vo=vo), self.ad, self.forwards)


# The same few elements every second.
@lru_cache(maxsize=20_000)
def forwarding(element: ComputingElement, names: Names | None) -> ComputingElement:
    """Return an element whose site forwards these attributes to its batch system; unchanged if `names` is None."""
    if names is None:
        return element
    return AdvertisedElement(**structs.asdict(element) | {"forwards": names})


def with_ad(resource: Resource, ad: str, forwards: Names | None = None) -> AdvertisedResource:
    """Return a resource with this ad of its element, which replaces any ad that it had."""
    fields = structs.asdict(resource) | {"ad": ad, "forwards": forwards}
    return AdvertisedResource(**fields)


def as_it_is(resource: Resource, node: Told = ()) -> Resource:
    """Return the resource of a running pilot, made from that of a pilot yet to be sent. `node` has the attributes measured on its node."""
    if isinstance(resource, AdvertisedResource):
        return structs.replace(resource, forwards=None, node=node)
    return structs.replace(resource, node=node)


def without_ad(resource: Resource) -> Resource:
    """Return a resource without the ad of its element."""
    fields = structs.asdict(resource)
    fields.pop("ad", None)
    fields.pop("forwards", None)
    return Resource(**fields)


def plain(resource: Resource) -> Resource:
    """Return a resource without site, computing element and ad; equal for all resources of one kind."""
    return structs.replace(without_ad(resource), site="", grid_ce="")


def ad_of(described: Resource | ComputingElement) -> str:
    """Return the ClassAd of a resource or an element, as canonical text; empty if it has none."""
    return described.ad if isinstance(described, AdvertisedResource | AdvertisedElement) else ""


def forwards_of(described: Resource) -> Names | None:
    """Return the attributes that can be requested from the batch system. None unless the resource is that of a pilot yet to be sent."""
    return described.forwards if isinstance(described, AdvertisedResource) else None
