"""The plan: how many pilots to send to which computing element, for which VO, and why; also why none.

Every waiting job is counted once over all elements. First the places under way - pilots submitted or waiting, idle slots of
running ones - take up the work they could do, the work with the fewest elements first. What a pilot could do the matcher's own
clauses say, by what that pilot offers: its memory and time left, what its node was found not to do for; of one that is on its
way also for which hosts it asked. For what is left pilots are ordered one by one: each for the VO that has the fewest (so that
none starves another), for its work with the fewest elements, at the element that keeps the orders in proportion to the room there was; and the places it brings
beyond its own work take up other work of the VO before another is ordered. So the places ordered exceed the work by less
than one pilot a kind of work, and by nothing where a pilot brings one place. What limits hold back takes no places and gets
no pilots; elements that are avoided get pilots for canaries alone.

Where only the node itself can tell whether it does, one pilot goes at first, and then as many at a time as have found work
there. Work that likes some elements better gets its pilots there as long as there is room.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from wms.bounds import Count, CpuTime, LongText, LongTexts, StoredName, Total
from wms.ids import CeId
from wms.matching.clauses import fits, serves_whom
from wms.matching.grouping import Requirements
from wms.provisioning.demand import (
    Avoided,
    Demand,
    HostsOf,
    QueuedWork,
    Unservable,
    WorkKind,
    gather,
    pilot_at,
)
from wms.provisioning.limit_headroom import LimitHeadroom
from wms.provisioning.pilot_class import PilotClass
from wms.provisioning.private_groups import NOBODY, PrivateGroups
from wms.provisioning.purpose import Purpose
from wms.site import ComputingElement, PilotOwner, Resource, ad_of, as_it_is, with_ad

SHARES = 50
"""Classes of work that a decision tells of, those with the most jobs."""


class PilotSupply(Struct, frozen=True, kw_only=True):
    """Pilots of one VO on one element that offer the same.

    `running` counts all that run, `ending` those of them that take no more jobs; `idle_slots` are the free places of the
    others.
    """

    site: str
    ce: str
    vo: str
    submitted: int = 0
    waiting: int = 0
    running: int = 0
    ending: int = 0
    idle_slots: int = 0
    resource: Resource | None = None
    """What each of them offers a job; None: what one that is sent now would."""
    asks: str = ""
    """The name of the class of hosts that they asked for."""


class Caps(Struct, frozen=True, kw_only=True):
    """Bounds over all elements: pilots in one plan, and pilots in all (0: no bound)."""

    orders: int = 1_000
    pilots: int = 0


class PlannedPilots(Struct, frozen=True, kw_only=True):
    """Send so many pilots of a VO to an element, for a class of its hosts; None for none in particular."""

    site: str
    ce: str
    vo: str
    count: int
    reasons: tuple[str, ...]
    hosts: PilotClass | None = None
    private: PilotOwner | None = None
    """Whose jobs alone they take; None: those of the whole VO."""
    purpose: Purpose = Purpose()
    """What the jobs ask for that they are sent for."""


Choice: TypeAlias = Literal["room", "random"]
"""How a pilot's element is chosen among those that fit: by the room that they have, or at random among those with any."""
Hindrance: TypeAlias = Literal[
    "", "NO_DEMAND", "LIMIT", "NO_ROOM", "CAP", "BACKOFF", "QUARANTINE", "BANNED", "DRAINING"
]
"""What kept more pilots from being sent; empty where nothing did."""


class WorkDecision(Struct, frozen=True, kw_only=True):
    """What was decided for one class of work at one element: its jobs, who takes them up, and what held more back."""

    vo: StoredName
    cpu_segment: CpuTime
    processors: Count
    wanted: Total
    """Jobs that wait and could run there."""
    taken: Total
    """Of them, those that pilots there, running or on the way, take up."""
    sent: Count
    """PilotSupply sent for them."""
    elsewhere: Total
    """Jobs that pilots elsewhere take up, or new ones anywhere."""
    held: Hindrance
    why: LongText


class ElementDecision(Struct, frozen=True, kw_only=True):
    """What was decided for an element, for all VOs together."""

    site: StoredName
    ce: StoredName
    ordered: Count
    reasons: LongTexts
    submitted: Count = 0
    waiting: Count = 0
    running: Count = 0
    idle_slots: Total = 0
    ending: Count = 0
    room: Total = 0
    shares: Annotated[tuple[WorkDecision, ...], Meta(max_length=1_000)] = ()


class Plan(Struct, frozen=True, kw_only=True):
    """Orders, a decision for each element in the order given, and the work that none of them can do."""

    orders: tuple[PlannedPilots, ...]
    decisions: tuple[ElementDecision, ...]
    unservable: tuple[Unservable, ...]


class _Work:
    """A kind of work and the jobs of it that nobody takes up yet."""

    __slots__ = ("elements", "kind", "left", "processors", "sent", "taken", "vo")

    def __init__(self, kind: WorkKind) -> None:
        self.kind = kind
        self.vo = kind.requirements.vo
        self.elements = kind.elements
        self.processors = kind.processors
        self.left = kind.jobs
        self.taken: dict[int, int] = {}
        """By element: jobs that pilots there take up."""
        self.sent: dict[int, int] = {}
        """By element: pilots ordered."""

    @property
    def pickiness(self) -> tuple[object, ...]:
        """Less of what pilots do for it is before more."""
        asked = self.kind.requirements
        return (
            len(self.elements),
            not self.kind.hosts,
            -asked.cpu_segment,
            -self.processors,
            -asked.min_ram_mb,
        )

    def asks(self, element: "_Element") -> str:
        """Return the name of the class of hosts that pilots for it ask an element for; empty: of none in particular."""
        hosts = self.kind.hosts.get(element.number)
        return hosts.name if hosts else ""

    def takes(self, owner: PilotOwner | None) -> bool:
        """Tell whether its jobs may go to the pilots of an owner, or with None to generic ones."""
        asked = self.kind.requirements
        return serves_whom(asked, owner) if owner or asked.pilot_types else True


class _Supply:
    """Places of pilots of one VO that offer the same; `asks` None: of such as run, whose hosts are what they are."""

    __slots__ = ("asks", "each", "left", "resource", "usual", "vo")

    def __init__(self, pilots: PilotSupply, ad: ComputingElement, places: int, asks: str | None) -> None:
        self.vo = pilots.vo
        self.left = places
        self.asks = asks
        said = pilots.resource
        self.each = said.processors if said and asks is None else ad.slots_per_pilot
        """Places of one pilot: a job has all of its own in one."""
        if said is not None and ad_of(ad):
            said = with_ad(said, ad_of(ad))
        usual = as_it_is(pilot_at(ad, pilots.vo).resource)
        self.resource = usual if said is None else said
        self.usual = self.resource == usual
        """Whether it is as the element says; what asks for nothing of its ad does there then."""

    @property
    def worth(self) -> tuple[object, ...]:
        """What fewer could use is before what more could."""
        said = self.resource
        if self.usual:
            return bool(self.asks), True
        return bool(self.asks), False, said.cpu_time, self.each, said.memory_mb, -len(said.unfit)

    def serves(self, work: _Work, element: "_Element") -> bool:
        """Tell whether one of these pilots could take a job of the work."""
        if self.vo != work.vo or not serves_whom(work.kind.requirements, self.resource):
            return False
        wanted = work.asks(element)
        if wanted and wanted == self.asks:
            return True  # it was asked for by what this work is asked for by
        if wanted and self.asks is not None and not self.resource.node:
            return False  # it may come to any host
        if self.usual and not work.kind.requirements.requirements:
            return True
        return _fits(work.kind.requirements, self.resource)


@lru_cache(maxsize=100_000)
def _fits(requirements: Requirements, resource: Resource) -> bool:
    return fits(requirements, resource) is None


Sort: TypeAlias = tuple[str, PilotClass | None, PilotOwner | None]
"""A VO, a class of hosts, and whose jobs alone the pilots take; None: those of all."""


class _Element:
    """An element with its room for pilots and the places under way."""

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
        self.ordered: Counter[Sort] = Counter()
        self.taken: Counter[Sort] = Counter()
        self.purposes: dict[Sort, Purpose] = {}

    @property
    def total(self) -> int:
        return self.ordered.total()

    @property
    def open(self) -> bool:
        return self.total < self.room

    def untried(self, work: _Work) -> int:
        """How many more pilots may go here for work of which only the node can tell whether it does."""
        hosts = work.kind.hosts.get(self.number)
        if hosts is None or hosts.sure:
            return self.room
        there = [each for each in self.pilots if (each.vo, each.asks) == (work.vo, hosts.name)]
        idle = sum(-(-each.idle_slots // self.ad.slots_per_pilot) for each in there)
        coming = sum(each.submitted + each.waiting for each in there) + sum(
            ordered for (vo, asked, _), ordered in self.ordered.items() if (vo, asked) == (work.vo, hosts)
        )
        return max(1, sum(each.running for each in there) - idle) - coming - idle

    def startable(self, work: _Work) -> int:
        """How many jobs of a work that nobody takes up yet the limits let start here."""
        keys = work.kind.keys.get(self.number, ())
        return min(work.left, self.leeway.left(keys, work.left)) if keys else work.left

    def use(self, work: _Work) -> None:
        """Let work take up the places under way that it could use."""
        for supply in self.supplies:
            if supply.left and work.left and supply.serves(work, self):
                supply.left = self.take(work, supply.left, supply.each)

    def take(self, work: _Work, places: int, of_each: int) -> int:
        """Let work take up places, so many of each pilot; return how many are left."""
        each = min(work.processors, self.ad.slots_per_pilot)
        pilots, rest = divmod(places, of_each)
        jobs = min(self.startable(work), pilots * (of_each // each) + rest // each)
        work.left -= jobs
        self.leeway.take(work.kind.keys.get(self.number, ()), jobs)
        return places - jobs * each


def _supplies(ad: ComputingElement, pilots: Iterable[PilotSupply]) -> Iterable[_Supply]:
    for each in pilots:
        if coming := each.submitted + each.waiting:
            yield _Supply(each, ad, coming * ad.slots_per_pilot, each.asks)
        if each.idle_slots:
            yield _Supply(each, ad, each.idle_slots, None)


def room_of(ad: ComputingElement, under_way: int, running: int) -> tuple[int, str]:
    """Return how many more pilots an element takes, and what the bound is."""
    if ad.fault():
        return 0, f"its ad is faulty: {ad.fault()}"
    room = max(0, ad.pilot_limit - under_way - running)
    full = f"full: {under_way + running} of {ad.pilot_limit} pilots"
    if ad.max_waiting_pilots and ad.max_waiting_pilots - under_way < room:
        room = max(0, ad.max_waiting_pilots - under_way)
        full = f"{under_way} pilots are on the way, of at most {ad.max_waiting_pilots}"
    return room, full


def plan(
    waiting: Iterable[QueuedWork],
    elements: Sequence[ComputingElement],
    pilots: Iterable[PilotSupply] = (),
    caps: Caps | None = None,
    rng: Callable[[], float] | None = None,
    *,
    leeway: LimitHeadroom | None = None,
    avoided: Mapping[CeId, Avoided] | None = None,
    hosts: HostsOf | None = None,
    choice: Choice = "room",
    private: PrivateGroups = NOBODY,
) -> Plan:
    """Decide how many pilots go where. Pilots on elements not given count against the caps only.

    Among elements that are equally good `rng`, which gives numbers in [0, 1), draws one; without it the first is taken.
    `leeway` is what limits let start, and is used up; `avoided` are elements to which no work goes, but for canaries.
    `hosts` says which hosts pilots ask for, or why none are sent for some work now; None: none ever ask. With the `choice` "random" `rng`
    draws each pilot's element among all that fit, have room, and are liked best. `private` are the groups with pilots of their own.
    """
    leeway = leeway or LimitHeadroom()
    demand = gather(waiting, elements, leeway, avoided or {}, hosts, private)
    return _Planner(demand, elements, list(pilots), caps or Caps(), leeway, rng, choice).plan()


def orders(
    demand: Demand, elements: Sequence[ComputingElement], pilots: Iterable[PilotSupply], caps: Caps
) -> tuple[PlannedPilots, ...]:
    """Return the orders of the plan for a demand that was gathered from these elements; no reasons for the others."""
    return _Planner(demand, elements, list(pilots), caps, LimitHeadroom()).orders()


class _Planner:
    def __init__(  # noqa: PLR0917 - what there is, what bounds it, and chance
        self,
        demand: Demand,
        elements: Sequence[ComputingElement],
        pilots: list[PilotSupply],
        caps: Caps,
        leeway: LimitHeadroom,
        rng: Callable[[], float] | None = None,
        choice: Choice = "room",
    ) -> None:
        self.demand = demand
        self.rng = rng
        self.choice = choice
        self.work = sorted((_Work(kind) for kind in demand.kinds), key=lambda work: len(work.elements))
        at: dict[CeId, list[PilotSupply]] = {}
        for group in pilots:
            at.setdefault(CeId(group.site, group.ce), []).append(group)
        self.elements = [
            _Element(number, ad, at.get(ad.ce_id, []), leeway) for number, ad in enumerate(elements)
        ]
        alive = sum(p.submitted + p.waiting + p.running for p in pilots)
        self.cap = min(caps.orders, max(0, caps.pilots - alive)) if caps.pilots else caps.orders
        self.by_vo = {work.vo: 0 for work in self.work}
        for group in pilots:
            if group.vo in self.by_vo:
                self.by_vo[group.vo] += group.submitted + group.waiting + group.running

    def orders(self) -> tuple[PlannedPilots, ...]:
        self._use_what_is_under_way()
        while self.cap > 0 and (work := self._next_work()) is not None:
            self._order(work)
        return tuple(order for element in self.elements for order in _orders(element, self.choice))

    def plan(self) -> Plan:
        return Plan(
            orders=self.orders(),
            decisions=tuple(self._decision(number) for number in range(len(self.elements))),
            unservable=tuple(self.demand.unservable),
        )

    def _use_what_is_under_way(self) -> None:
        """Let the pickiest work choose first, at the elements that the least other work may use."""
        wanted = [sum(number in work.elements for work in self.work) for number in range(len(self.elements))]
        for work in sorted(self.work, key=lambda each: each.pickiness):
            for number in sorted(work.elements, key=wanted.__getitem__):
                before = work.left
                self.elements[number].use(work)
                if work.left < before:
                    work.taken[number] = before - work.left

    def _next_work(self) -> _Work | None:
        open_work = (
            work
            for work in self.work
            if work.left and any(self._may_order(work, number) for number in work.elements)
        )
        return min(open_work, key=lambda work: (self.by_vo[work.vo], len(work.elements)), default=None)

    def _may_order(self, work: _Work, number: int) -> bool:
        element = self.elements[number]
        return element.open and element.startable(work) > 0 and element.untried(work) > 0

    def _liked(self, work: _Work) -> list[int]:
        """Return the elements where a pilot may be ordered for a work, of these the ones that it likes best."""
        open_ = [number for number in work.elements if self._may_order(work, number)]
        ranks = work.kind.ranks
        best = max((ranks.get(number, 0.0) for number in open_), default=0.0)
        return [number for number in open_ if ranks.get(number, 0.0) == best]

    def _order(self, work: _Work) -> None:
        """PlannedPilots one pilot for a work, and fill its places."""
        number = self._drawn(self._liked(work))
        element = self.elements[number]
        sort = work.vo, work.kind.hosts.get(number), work.kind.private
        element.ordered[sort] += 1
        element.purposes[sort] = element.purposes.get(sort, Purpose()).with_work(
            work.kind.requirements, work.kind.owner_groups
        )
        work.sent[number] = work.sent.get(number, 0) + 1
        self.by_vo[work.vo] += 1
        self.cap -= 1
        places = element.ad.slots_per_pilot
        for other in (work, *(each for each in self.work if self._shares_pilot(each, number, sort))):
            before = other.left
            places = element.take(other, places, element.ad.slots_per_pilot)
            element.taken[sort] += before - other.left

    @staticmethod
    def _shares_pilot(work: _Work, number: int, sort: Sort) -> bool:
        vo, hosts, owner = sort
        if work.vo != vo or number not in work.elements or not work.takes(owner):
            return False
        return work.kind.hosts.get(number) in (None, hosts)

    def _drawn(self, open_: Iterable[int]) -> int:
        """Return one of the elements that are open: any of those that keep the orders in proportion to the room best."""
        if self.choice == "random" and self.rng is not None:
            fitting = list(open_)
            return fitting[int(self.rng() * len(fitting))]
        ratios = {n: self.elements[n].room / (self.elements[n].total + 1) for n in open_}
        best = max(ratios.values())
        equal = [number for number, ratio in ratios.items() if ratio == best]
        return equal[int(self.rng() * len(equal))] if self.rng is not None else equal[0]

    def _decision(self, number: int) -> ElementDecision:
        element = self.elements[number]
        reasons = tuple(
            "; ".join((f"{order.count} of VO {order.vo}: {order.reasons[0]}", *order.reasons[2:]))
            for order in _orders(element, self.choice)
        )
        return ElementDecision(
            site=element.ad.site,
            ce=element.ad.ce,
            ordered=element.total,
            reasons=reasons or (f"none sent because {self._why_none(number)}",),
            submitted=sum(each.submitted for each in element.pilots),
            waiting=sum(each.waiting for each in element.pilots),
            running=sum(each.running for each in element.pilots),
            idle_slots=element.idle,
            ending=sum(each.ending for each in element.pilots),
            room=element.room,
            shares=self._shares(number),
        )

    def _shares(self, number: int) -> tuple[WorkDecision, ...]:
        """Return what was decided here for each class of work."""
        classes: dict[tuple[str, int, int], list[_Work]] = {}
        for work in self._near(number):
            asked = work.kind.requirements
            classes.setdefault((work.vo, asked.cpu_segment, work.processors), []).append(work)
        found = [self._share(number, name, works) for name, works in classes.items()]
        return tuple(sorted(found, key=lambda each: -each.wanted)[:SHARES])

    def _near(self, number: int) -> list[_Work]:
        return [each for each in self.work if number in each.elements or number in each.kind.avoided]

    def _share(self, number: int, name: tuple[str, int, int], works: Sequence[_Work]) -> WorkDecision:
        taken = sum(work.taken.get(number, 0) for work in works)
        held, why = self._what_held(number, works)
        wanted = sum(work.kind.jobs for work in works)
        return WorkDecision(
            vo=name[0],
            cpu_segment=name[1],
            processors=name[2],
            wanted=wanted,
            taken=taken,
            sent=sum(work.sent.get(number, 0) for work in works),
            elsewhere=wanted - taken - sum(work.left for work in works),
            held=held,
            why=why,
        )

    def _what_held(self, number: int, works: Sequence[_Work]) -> tuple[Hindrance, str]:
        """Return what kept more pilots from being sent here for a class of work: of several obstacles the first."""
        element = self.elements[number]
        for work in works:
            if found := work.kind.avoided.get(number):
                return found.code, found.why
        wanting = [work for work in works if work.left]
        if not wanting:
            sent = any(work.sent.get(number) for work in works)
            return ("", "") if sent else ("NO_DEMAND", "pilots that there are or were ordered take it up")
        if not element.open:
            return "NO_ROOM", element.full
        for work in wanting:
            if not element.startable(work):
                return "LIMIT", element.leeway.fullest(work.kind.keys[number])
            if element.untried(work) <= 0:
                return "LIMIT", _UNTRIED
        return "CAP", "the cap on pilots is reached"

    def _why_none(self, number: int) -> str:
        element = self.elements[number]
        if element.ad.fault():
            return element.full
        reaching = [work for work in self.work if number in work.elements]
        if not reaching:
            shut = next(
                (work.kind.avoided[number] for work in self.work if number in work.kind.avoided), None
            )
            return f"it is avoided, {shut.why}" if shut else self._why_unreached(number)
        if not any(work.left for work in reaching):
            return f"the work it could do is taken up by pilots there are ({element.under_way} on the way here, {element.idle} idle slots) or ordered elsewhere"
        if not element.open:
            return f"it is {element.full}" if element.full.startswith("full") else element.full
        startable = [work for work in reaching if element.startable(work)]
        if not startable:
            keys = next(work.kind.keys[number] for work in reaching if work.left)
            return f"a limit lets no more jobs start: {element.leeway.fullest(keys)}"
        untried = all(element.untried(work) <= 0 for work in startable)
        return _UNTRIED if untried else "the cap on pilots is reached"

    def _why_unreached(self, number: int) -> str:
        counts = self.demand.unreached[number].most_common(5)
        if not counts:
            return "no job waits"
        return "no waiting job may run there: " + ", ".join(
            f"{clause} ({'1 job' if n == 1 else f'{n} jobs'})" for clause, n in counts
        )


_UNTRIED = "only its nodes can tell whether they do: pilots go as others find work there"


_AT_RANDOM = "drawn at random among the elements that fit and have room"


def _unmet(jobs: int, slots: int) -> str:
    waiting = "1 waiting job fits" if jobs == 1 else f"{jobs} waiting jobs fit"
    return f"sent because {waiting} no existing pilot ({slots} {'slot' if slots == 1 else 'slots'} each)"


def _orders(element: _Element, choice: Choice) -> list[PlannedPilots]:
    return [
        PlannedPilots(
            site=element.ad.site,
            ce=element.ad.ce,
            vo=vo,
            count=count,
            hosts=hosts,
            reasons=(
                _unmet(element.taken[vo, hosts, owner], element.ad.slots_per_pilot),
                f"room for {element.room} pilots, {element.under_way} on the way, {element.idle} idle slots",
                *((_AT_RANDOM,) if choice == "random" else ()),
                *((str(hosts),) if hosts else ()),
                *((f"private pilots of {owner.text}",) if owner else ()),
            ),
            private=owner,
            purpose=element.purposes[vo, hosts, owner],
        )
        for (vo, hosts, owner), count in element.ordered.items()
    ]
