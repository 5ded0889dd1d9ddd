"""The plan: how many pilots to send to which computing element, for which VO, and why; also why none.

Every waiting job is counted once over all elements. First the places under way - pilots submitted or waiting, idle slots of
running ones that do not end soon - take up the work they could do, the work with the fewest elements first. For what is
left pilots are ordered one by one: each for the VO that has the fewest (so that none starves another), for its work with
the fewest elements, at the element that keeps the orders in proportion to the room there was; and the places it brings
beyond its own work take up other work of the VO before another is ordered. So the places ordered exceed the work by less
than one pilot a kind of work, and by nothing where a pilot brings one place. What limits hold back takes no places and gets
no pilots; elements that are avoided get pilots for canaries alone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from wms.provisioning.demand import Avoided, Demand, Kind, Unservable, Waiting, gather
from wms.provisioning.health import Place
from wms.provisioning.leeway import Leeway
from wms.site import ComputingElement

SHARES = 50
"""Classes of work that a decision tells of, those with the most jobs."""


class Pilots(Struct, frozen=True, kw_only=True):
    """The pilots of one VO on one element.

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


class Caps(Struct, frozen=True, kw_only=True):
    """Bounds over all elements: pilots in one plan, and pilots in all (0: no bound)."""

    orders: int = 1_000
    pilots: int = 0


class Order(Struct, frozen=True, kw_only=True):
    """Send so many pilots of a VO to an element."""

    site: str
    ce: str
    vo: str
    count: int
    reasons: tuple[str, ...]


Held: TypeAlias = Literal[
    "", "NO_DEMAND", "LIMIT", "NO_ROOM", "CAP", "BACKOFF", "QUARANTINE", "BANNED", "DRAINING"
]
"""What kept more pilots from being sent; empty where nothing did."""


class Share(Struct, frozen=True, kw_only=True):
    """What was decided for one class of work at one element: its jobs, who takes them up, and what held more back."""

    vo: str
    cpu_segment: int
    processors: int
    wanted: int
    """Jobs that wait and could run there."""
    taken: int
    """Of them, those that pilots there, running or on the way, take up."""
    sent: int
    """Pilots sent for them."""
    elsewhere: int
    """Jobs that pilots elsewhere take up, or new ones anywhere."""
    held: Held
    why: str


class Decision(Struct, frozen=True, kw_only=True):
    """What was decided for an element, for all VOs together."""

    site: str
    ce: str
    ordered: int
    reasons: tuple[str, ...]
    submitted: int = 0
    waiting: int = 0
    running: int = 0
    idle_slots: int = 0
    ending: int = 0
    room: int = 0
    shares: tuple[Share, ...] = ()


class Plan(Struct, frozen=True, kw_only=True):
    """Orders, a decision for each element in the order given, and the work that none of them can do."""

    orders: tuple[Order, ...]
    decisions: tuple[Decision, ...]
    unservable: tuple[Unservable, ...]


class _Work:
    """A kind of work and the jobs of it that nobody takes up yet."""

    __slots__ = ("elements", "kind", "left", "processors", "sent", "taken", "vo")

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.vo = kind.requirements.vo
        self.elements = kind.elements
        self.processors = kind.processors
        self.left = kind.jobs
        self.taken: dict[int, int] = {}
        """By element: jobs that pilots there take up."""
        self.sent: dict[int, int] = {}
        """By element: pilots ordered."""


class _Element:
    """An element with its room for pilots and the places under way, by VO."""

    __slots__ = (
        "ad",
        "full",
        "idle",
        "leeway",
        "number",
        "ordered",
        "pilots",
        "places",
        "room",
        "taken",
        "under_way",
    )  # fmt: skip

    def __init__(self, number: int, ad: ComputingElement, pilots: Sequence[Pilots], leeway: Leeway) -> None:
        self.number = number
        self.ad = ad
        self.pilots = pilots
        self.leeway = leeway
        self.under_way = sum(p.submitted + p.waiting for p in pilots)
        self.idle = sum(p.idle_slots for p in pilots)
        self.places = {p.vo: (p.submitted + p.waiting) * ad.slots_per_pilot + p.idle_slots for p in pilots}
        self.room, self.full = _room(ad, self.under_way, sum(p.running for p in pilots))
        self.ordered: dict[str, int] = {}
        self.taken: dict[str, int] = {}

    @property
    def total(self) -> int:
        return sum(self.ordered.values())

    @property
    def open(self) -> bool:
        return self.total < self.room

    def startable(self, work: _Work) -> int:
        """How many jobs of a work that nobody takes up yet the limits let start here."""
        keys = work.kind.keys.get(self.number, ())
        return min(work.left, self.leeway.left(keys, work.left)) if keys else work.left

    def take(self, work: _Work, places: int) -> int:
        """Let work take up places; return how many are left."""
        each = min(work.processors, self.ad.slots_per_pilot)
        jobs = min(self.startable(work), places // each)
        work.left -= jobs
        self.leeway.take(work.kind.keys.get(self.number, ()), jobs)
        return places - jobs * each


def _room(ad: ComputingElement, under_way: int, running: int) -> tuple[int, str]:
    """How many more pilots an element takes, and what the bound is."""
    if ad.fault():
        return 0, f"its ad is faulty: {ad.fault()}"
    room = max(0, ad.pilot_limit - under_way - running)
    full = f"full: {under_way + running} of {ad.pilot_limit} pilots"
    if ad.max_waiting_pilots and ad.max_waiting_pilots - under_way < room:
        room = max(0, ad.max_waiting_pilots - under_way)
        full = f"{under_way} pilots are on the way, of at most {ad.max_waiting_pilots}"
    return room, full


def plan(
    waiting: Iterable[Waiting],
    elements: Sequence[ComputingElement],
    pilots: Iterable[Pilots] = (),
    caps: Caps | None = None,
    rng: Callable[[], float] | None = None,
    *,
    leeway: Leeway | None = None,
    avoided: Mapping[Place, Avoided] | None = None,
) -> Plan:
    """Decide how many pilots go where. Pilots on elements not given count against the caps only.

    Among elements that are equally good `rng`, which gives numbers in [0, 1), draws one; without it the first is taken.
    `leeway` is what limits let start, and is used up; `avoided` are elements to which no work goes, but for canaries.
    """
    leeway = leeway or Leeway()
    demand = gather(waiting, elements, leeway, avoided or {})
    return _Planner(demand, elements, list(pilots), caps or Caps(), leeway, rng).plan()


def orders(
    demand: Demand, elements: Sequence[ComputingElement], pilots: Iterable[Pilots], caps: Caps
) -> tuple[Order, ...]:
    """Return the orders of the plan for a demand that was gathered from these elements; no reasons for the others."""
    return _Planner(demand, elements, list(pilots), caps, Leeway()).orders()


class _Planner:
    def __init__(  # noqa: PLR0917 - what there is, what bounds it, and chance
        self,
        demand: Demand,
        elements: Sequence[ComputingElement],
        pilots: list[Pilots],
        caps: Caps,
        leeway: Leeway,
        rng: Callable[[], float] | None = None,
    ) -> None:
        self.demand = demand
        self.rng = rng
        self.work = sorted((_Work(kind) for kind in demand.kinds), key=lambda work: len(work.elements))
        at: dict[tuple[str, str], list[Pilots]] = {}
        for group in pilots:
            at.setdefault((group.site, group.ce), []).append(group)
        self.elements = [
            _Element(number, ad, at.get((ad.site, ad.ce), []), leeway) for number, ad in enumerate(elements)
        ]
        alive = sum(p.submitted + p.waiting + p.running for p in pilots)
        self.cap = min(caps.orders, max(0, caps.pilots - alive)) if caps.pilots else caps.orders
        self.by_vo = {work.vo: 0 for work in self.work}
        for group in pilots:
            if group.vo in self.by_vo:
                self.by_vo[group.vo] += group.submitted + group.waiting + group.running

    def orders(self) -> tuple[Order, ...]:
        self._use_what_is_under_way()
        while self.cap > 0 and (work := self._next_work()) is not None:
            self._order(work)
        return tuple(order for element in self.elements for order in _orders(element))

    def plan(self) -> Plan:
        return Plan(
            orders=self.orders(),
            decisions=tuple(self._decision(number) for number in range(len(self.elements))),
            unservable=tuple(self.demand.unservable),
        )

    def _use_what_is_under_way(self) -> None:
        """Let the pickiest work choose first, at the elements that the least other work may use."""
        wanted = [sum(number in work.elements for work in self.work) for number in range(len(self.elements))]
        for work in self.work:
            for number in sorted(work.elements, key=wanted.__getitem__):
                element = self.elements[number]
                before = work.left
                element.places[work.vo] = element.take(work, element.places.get(work.vo, 0))
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
        return element.open and element.startable(work) > 0

    def _order(self, work: _Work) -> None:
        """Order one pilot for a work, and fill its places."""
        number = self._drawn(number for number in work.elements if self._may_order(work, number))
        element = self.elements[number]
        vo = work.vo
        element.ordered[vo] = element.ordered.get(vo, 0) + 1
        work.sent[number] = work.sent.get(number, 0) + 1
        self.by_vo[vo] += 1
        self.cap -= 1
        places = element.ad.slots_per_pilot
        for other in (work, *(w for w in self.work if w.vo == vo and number in w.elements)):
            before = other.left
            places = element.take(other, places)
            element.taken[vo] = element.taken.get(vo, 0) + before - other.left

    def _drawn(self, open_: Iterable[int]) -> int:
        """Return one of the elements that are open: any of those that keep the orders in proportion to the room best."""
        ratios = {n: self.elements[n].room / (self.elements[n].total + 1) for n in open_}
        best = max(ratios.values())
        equal = [number for number, ratio in ratios.items() if ratio == best]
        return equal[int(self.rng() * len(equal))] if self.rng is not None else equal[0]

    def _decision(self, number: int) -> Decision:
        element = self.elements[number]
        reasons = tuple(f"{order.count} of VO {order.vo}: {order.reasons[0]}" for order in _orders(element))
        return Decision(
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

    def _shares(self, number: int) -> tuple[Share, ...]:
        """Return what was decided here for each class of work."""
        classes: dict[tuple[str, int, int], list[_Work]] = {}
        for work in self._near(number):
            asked = work.kind.requirements
            classes.setdefault((work.vo, asked.cpu_segment, work.processors), []).append(work)
        found = [self._share(number, name, works) for name, works in classes.items()]
        return tuple(sorted(found, key=lambda each: -each.wanted)[:SHARES])

    def _near(self, number: int) -> list[_Work]:
        return [each for each in self.work if number in each.elements or number in each.kind.avoided]

    def _share(self, number: int, name: tuple[str, int, int], works: Sequence[_Work]) -> Share:
        taken = sum(work.taken.get(number, 0) for work in works)
        held, why = self._what_held(number, works)
        wanted = sum(work.kind.jobs for work in works)
        return Share(
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

    def _what_held(self, number: int, works: Sequence[_Work]) -> tuple[Held, str]:
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
        if not any(element.startable(work) for work in reaching):
            keys = next(work.kind.keys[number] for work in reaching if work.left)
            return f"a limit lets no more jobs start: {element.leeway.fullest(keys)}"
        return "the cap on pilots is reached"

    def _why_unreached(self, number: int) -> str:
        counts = self.demand.unreached[number].most_common(5)
        if not counts:
            return "no job waits"
        return "no waiting job may run there: " + ", ".join(f"{clause} ({n} jobs)" for clause, n in counts)


def _orders(element: _Element) -> list[Order]:
    return [
        Order(
            site=element.ad.site,
            ce=element.ad.ce,
            vo=vo,
            count=count,
            reasons=(
                f"{element.taken[vo]} jobs wait that no pilot there is could take, {element.ad.slots_per_pilot} a pilot",
                f"room for {element.room} pilots, {element.under_way} on the way, {element.idle} idle slots",
            ),
        )
        for vo, count in element.ordered.items()
    ]
