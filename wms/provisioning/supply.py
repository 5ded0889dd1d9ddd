"""What a plan can use: elements with room for pilots, and the free places of pilots that run or are on their way."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct

from wms.matching.clauses import fits, serves_whom
from wms.matching.grouping import Requirements
from wms.provisioning.demand import pilot_at
from wms.provisioning.limit_headroom import LimitHeadroom
from wms.provisioning.open_work import OpenWork
from wms.provisioning.pilot_class import PilotClass
from wms.provisioning.purpose import Purpose
from wms.site import ComputingElement, PilotOwner, Resource, ad_of, as_it_is, with_ad


class PilotSupply(Struct, frozen=True, kw_only=True):
    """Pilots of one VO at one element that offer the same, counted by state.

    `running` counts all running pilots, `ending` those of them that take no more jobs. `idle_slots` are the free slots of the
    other running pilots.
    """

    site: str
    ce: str
    vo: str
    submitted: int = 0
    """How many pilots are sent to the element and not yet listed by it."""
    waiting: int = 0
    """How many pilots wait in the element's batch system."""
    running: int = 0
    ending: int = 0
    idle_slots: int = 0
    resource: Resource | None = None
    """The resource that each pilot offers; None: that of a pilot sent now."""
    asks: str = ""
    """The name of the pilot class; empty: pilots without special requests."""


class FreePlaces:
    """The free places (job slots) of equal pilots of one VO. `asks` is the class of pilots on their way; None: the pilots run."""

    __slots__ = ("asks", "each", "left", "resource", "usual", "vo")

    def __init__(self, pilots: PilotSupply, ad: ComputingElement, places: int, asks: str | None) -> None:
        self.vo = pilots.vo
        self.left = places
        self.asks = asks
        said = pilots.resource
        self.each = said.processors if said and asks is None else ad.slots_per_pilot
        """How many job slots one pilot has. All slots that a job needs must be of the same pilot."""
        if said is not None and ad_of(ad):
            said = with_ad(said, ad_of(ad))
        usual = as_it_is(pilot_at(ad, pilots.vo).resource)
        self.resource = usual if said is None else said
        self.usual = self.resource == usual
        """Whether the pilots' resource equals the one that the ad promises. Then work without an expression fits without a further check."""

    @property
    def worth(self) -> tuple[object, ...]:
        """A sort key for free places: those that little of the waiting work can use come first, and are filled first."""
        said = self.resource
        if self.usual:
            return bool(self.asks), True
        return bool(self.asks), False, said.cpu_time, self.each, said.memory_mb

    def serves(self, work: OpenWork, element: "PlannedElement") -> bool:
        """Return whether one of these pilots could take a job of the work."""
        if self.vo != work.vo or not serves_whom(work.kind.requirements, self.resource):
            return False
        wanted = work.asks(element.number)
        if wanted and wanted == self.asks:
            return True  # these pilots asked for the hosts that this work needs
        if wanted and self.asks is not None and not self.resource.node:
            return False  # these pilots may start on any host
        if self.usual and not work.kind.requirements.requirements:
            return True
        return _fits(work.kind.requirements, self.resource)


@lru_cache(maxsize=100_000)
def _fits(requirements: Requirements, resource: Resource) -> bool:
    return fits(requirements, resource) is None


PilotSort: TypeAlias = tuple[str, PilotClass | None, PilotOwner | None]
"""The key of pilots that are ordered together: their VO, class and owner.

The class is None for pilots without special requests, the owner None for generic pilots.
"""


class PlannedElement:
    """A computing element while a plan is made: its room for pilots, its free places, and the pilots ordered so far."""

    __slots__ = (
        "ad",
        "full",
        "idle",
        "leeway",
        "number",
        "ordered",
        "pilots",
        "purposes",
        "room",
        "supplies",
        "taken",
        "under_way",
    )  # fmt: skip

    def __init__(
        self, number: int, ad: ComputingElement, pilots: Sequence[PilotSupply], leeway: LimitHeadroom
    ) -> None:
        self.number = number
        self.ad = ad
        self.pilots = pilots
        self.leeway = leeway
        self.under_way = sum(p.submitted + p.waiting for p in pilots)
        self.idle = sum(p.idle_slots for p in pilots)
        self.supplies = sorted(_supplies(ad, pilots), key=lambda each: each.worth)
        self.room, self.full = room_of(ad, self.under_way, sum(p.running for p in pilots))
        self.ordered: Counter[PilotSort] = Counter()
        self.taken: Counter[PilotSort] = Counter()
        self.purposes: dict[PilotSort, Purpose] = {}

    @property
    def total(self) -> int:
        """How many pilots this plan has ordered for the element so far."""
        return self.ordered.total()

    @property
    def open(self) -> bool:
        """Whether the element has room for one more pilot."""
        return self.total < self.room

    def untried(self, work: OpenWork) -> int:
        """Return how many further pilots may be sent for this work.

        If only a node can decide whether it fits, it is few until pilots find work there.

        For other work, it is all the room.
        """
        hosts = work.kind.hosts.get(self.number)
        if hosts is None or hosts.sure:
            return self.room
        there = [each for each in self.pilots if (each.vo, each.asks) == (work.vo, hosts.name)]
        idle = sum(-(-each.idle_slots // self.ad.slots_per_pilot) for each in there)
        coming = sum(each.submitted + each.waiting for each in there) + sum(
            ordered for (vo, asked, _), ordered in self.ordered.items() if (vo, asked) == (work.vo, hosts)
        )
        return max(1, sum(each.running for each in there) - idle) - coming - idle

    def startable(self, work: OpenWork) -> int:
        """Return how many of the work's unassigned jobs the limits let start at this element."""
        keys = work.kind.keys.get(self.number, ())
        return min(work.left, self.leeway.left(keys, work.left)) if keys else work.left

    def use(self, work: OpenWork) -> None:
        """Assign jobs of the work to the free places that fit them. The work's open jobs and the free places are reduced in place."""
        for supply in self.supplies:
            if supply.left and work.left and supply.serves(work, self):
                supply.left = self.take(work, supply.left, supply.each)

    def take(self, work: OpenWork, places: int, of_each: int) -> int:
        """Assign jobs of the work to `places` free places, of which one pilot has `of_each`. Return how many places remain.

        The work's `left` and the headroom of limits are reduced in place.
        """
        each = min(work.processors, self.ad.slots_per_pilot)
        pilots, rest = divmod(places, of_each)
        jobs = min(self.startable(work), pilots * (of_each // each) + rest // each)
        work.left -= jobs
        self.leeway.take(work.kind.keys.get(self.number, ()), jobs)
        return places - jobs * each


def _supplies(ad: ComputingElement, pilots: Iterable[PilotSupply]) -> Iterable[FreePlaces]:
    for each in pilots:
        if coming := each.submitted + each.waiting:
            yield FreePlaces(each, ad, coming * ad.slots_per_pilot, each.asks)
        if each.idle_slots:
            yield FreePlaces(each, ad, each.idle_slots, None)


def room_of(ad: ComputingElement, under_way: int, running: int) -> tuple[int, str]:
    """Return how many further pilots an element accepts, and a text on the limit that decides this.

    `under_way` is how many pilots are sent and have not started, `running` how many run.
    """
    if ad.fault():
        return 0, f"its ad is faulty: {ad.fault()}"
    room = max(0, ad.pilot_limit - under_way - running)
    full = f"full: {under_way + running} of {ad.pilot_limit} pilots"
    if ad.max_waiting_pilots and ad.max_waiting_pilots - under_way < room:
        room = max(0, ad.max_waiting_pilots - under_way)
        full = f"{under_way} pilots are on the way, of at most {ad.max_waiting_pilots}"
    return room, full
