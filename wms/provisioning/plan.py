"""The plan: how many pilots to send to which computing element, and for which VO.

Every waiting job is counted once over all elements. The plan is made in two steps.

1. Free places (job slots of pilots) take jobs that fit; work that the fewest elements can run is served first. Free places are the slots of
   pilots on their way and the idle slots of running ones. The matcher's clauses decide whether a job fits, by the pilot's memory,
   its time left, and the attributes of its node. For a pilot on its way the hosts that it requests count too.
2. Pilots are ordered one by one for the remaining jobs. Each goes to the VO with the fewest pilots, so that no VO starves
   another. Within the VO it is for the work with the fewest elements, at the element that keeps orders in proportion to the room.
   The pilot's other places take further jobs of its VO before the next pilot is ordered. So the ordered places exceed the jobs by
   less than one pilot for each kind of work, and by none if a pilot has one place.

Jobs that a limit holds back take no places and get no pilots. Avoided elements get pilots for canaries alone. If an element is
avoided only since it is full, its pilots take jobs all the same. Work with a rank expression gets its
pilots at the elements that it ranks highest, as long as they have room. If only a node can decide whether work fits, one pilot is sent first, and
then as many at a time as have found work there. `plan_report` explains why no more pilots were ordered.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from wms.ids import CeId
from wms.provisioning.demand import Avoidance, Demand, HostsOf, QueuedWork, Unservable, gather
from wms.provisioning.limit_headroom import LimitHeadroom
from wms.provisioning.open_work import OpenWork
from wms.provisioning.pilot_class import PilotClass
from wms.provisioning.plan_report import ElementDecision, decision, order_reasons
from wms.provisioning.private_groups import NOBODY, PrivateGroups
from wms.provisioning.purpose import Purpose
from wms.provisioning.supply import PilotSort, PilotSupply, PlannedElement
from wms.site import ComputingElement, PilotOwner


class PilotCaps(Struct, frozen=True, kw_only=True):
    """Limits on pilots over all elements: `orders` in one plan, and `pilots` alive at a time. 0: no limit on live pilots."""

    orders: int = 1_000
    pilots: int = 0


class PlannedPilots(Struct, frozen=True, kw_only=True):
    """An order to send `count` pilots of one VO to one computing element."""

    site: str
    ce: str
    vo: str
    count: int
    reasons: tuple[str, ...]
    """Why the pilots are ordered, as texts for people."""
    hosts: PilotClass | None = None
    """The class of the pilots, with their special requests; None: they have none."""
    private: PilotOwner | None = None
    """The owner or group whose jobs alone the pilots take; None: they take jobs of the whole VO."""
    purpose: Purpose = Purpose()
    """The greatest requirements of the jobs for which the pilots are sent."""


Choice: TypeAlias = Literal["room", "random"]
"""How a pilot's element is chosen among those that fit: by their room, or at random among those with room."""


class Plan(Struct, frozen=True, kw_only=True):
    """The result of planning: orders for pilots, a decision for each element in the order given, and unservable work."""

    orders: tuple[PlannedPilots, ...]
    decisions: tuple[ElementDecision, ...]
    unservable: tuple[Unservable, ...]


def plan(
    waiting: Iterable[QueuedWork],
    elements: Sequence[ComputingElement],
    pilots: Iterable[PilotSupply] = (),
    caps: PilotCaps | None = None,
    rng: Callable[[], float] | None = None,
    *,
    leeway: LimitHeadroom | None = None,
    avoided: Mapping[CeId, Avoidance] | None = None,
    hosts: HostsOf | None = None,
    choice: Choice = "room",
    private: PrivateGroups = NOBODY,
) -> Plan:
    """Decide how many pilots are sent to each of these elements. Pilots at other elements count against the caps only.

    Among equally good elements `rng`, which returns numbers in [0, 1), draws one; without it the first is taken. `leeway` is how many more jobs
    limits let start; the plan reduces it. `avoided` are elements that get no pilots except for canaries.

    `hosts` returns the pilot class of work at an element, or why no pilots are sent for it now. If it is None, no pilots have special requests. With
    the `choice` "random", `rng` draws each pilot's element among all that fit, have room, and are ranked highest. `private` are the groups with
    private pilots.
    """
    leeway = leeway or LimitHeadroom()
    demand = gather(waiting, elements, leeway, avoided or {}, hosts, private)
    return _Planner(demand, elements, list(pilots), caps or PilotCaps(), leeway, rng, choice).plan()


def orders(
    demand: Demand, elements: Sequence[ComputingElement], pilots: Iterable[PilotSupply], caps: PilotCaps
) -> tuple[PlannedPilots, ...]:
    """Return the orders of a plan without its report. `demand` was gathered from these elements, without limits on jobs."""
    return _Planner(demand, elements, list(pilots), caps, LimitHeadroom()).orders()


class _Planner:
    def __init__(  # noqa: PLR0917 - what there is, what bounds it, and chance
        self,
        demand: Demand,
        elements: Sequence[ComputingElement],
        pilots: list[PilotSupply],
        caps: PilotCaps,
        leeway: LimitHeadroom,
        rng: Callable[[], float] | None = None,
        choice: Choice = "room",
    ) -> None:
        self.demand = demand
        self.rng = rng
        self.at_random = choice == "random"
        self.work = sorted((OpenWork(kind) for kind in demand.kinds), key=lambda work: len(work.elements))
        at: dict[CeId, list[PilotSupply]] = {}
        for group in pilots:
            at.setdefault(CeId(group.site, group.ce), []).append(group)
        self.elements = [
            PlannedElement(number, ad, at.get(ad.ce_id, []), leeway) for number, ad in enumerate(elements)
        ]
        alive = sum(p.submitted + p.waiting + p.running for p in pilots)
        self.cap = min(caps.orders, max(0, caps.pilots - alive)) if caps.pilots else caps.orders
        self.by_vo = {work.vo: 0 for work in self.work}
        for group in pilots:
            if group.vo in self.by_vo:
                self.by_vo[group.vo] += group.submitted + group.waiting + group.running

    def orders(self) -> tuple[PlannedPilots, ...]:
        self._fill_free_places()
        while self.cap > 0 and (work := self._next_work()) is not None:
            self._order(work)
        return tuple(order for element in self.elements for order in self._orders(element))

    def plan(self) -> Plan:
        return Plan(
            orders=self.orders(),
            decisions=tuple(
                decision(element, self.work, self.demand.unreached[element.number], at_random=self.at_random)
                for element in self.elements
            ),
            unservable=tuple(self.demand.unservable),
        )

    def _fill_free_places(self) -> None:
        """Assign jobs to free places: first work that few pilots can run, at elements that little other work can use."""
        wanted = [
            sum(number in work.kind.served for work in self.work) for number in range(len(self.elements))
        ]
        for work in sorted(self.work, key=lambda each: each.pickiness):
            for number in sorted(work.kind.served, key=wanted.__getitem__):
                before = work.left
                self.elements[number].use(work)
                if work.left < before:
                    work.taken[number] = before - work.left

    def _next_work(self) -> OpenWork | None:
        open_work = (
            work
            for work in self.work
            if work.left and any(self._may_order(work, number) for number in work.elements)
        )
        return min(open_work, key=lambda work: (self.by_vo[work.vo], len(work.elements)), default=None)

    def _may_order(self, work: OpenWork, number: int) -> bool:
        element = self.elements[number]
        return element.open and element.startable(work) > 0 and element.untried(work) > 0

    def _liked(self, work: OpenWork) -> list[int]:
        """Return the elements where a pilot may be ordered for the work now: of those with room, only the ones that it ranks highest."""
        open_ = [number for number in work.elements if self._may_order(work, number)]
        ranks = work.kind.ranks
        best = max((ranks.get(number, 0.0) for number in open_), default=0.0)
        return [number for number in open_ if ranks.get(number, 0.0) == best]

    def _order(self, work: OpenWork) -> None:
        """Order one pilot for the work, and assign jobs to its job slots."""
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
    def _shares_pilot(work: OpenWork, number: int, sort: PilotSort) -> bool:
        vo, hosts, owner = sort
        if work.vo != vo or number not in work.elements or not work.takes(owner):
            return False
        return work.kind.hosts.get(number) in (None, hosts)

    def _drawn(self, open_: Iterable[int]) -> int:
        """Return one of the given elements: one that best keeps the orders in proportion to the room, or a random one."""
        if self.at_random and self.rng is not None:
            fitting = list(open_)
            return fitting[int(self.rng() * len(fitting))]
        ratios = {n: self.elements[n].room / (self.elements[n].total + 1) for n in open_}
        best = max(ratios.values())
        equal = [number for number, ratio in ratios.items() if ratio == best]
        return equal[int(self.rng() * len(equal))] if self.rng is not None else equal[0]

    def _orders(self, element: PlannedElement) -> list[PlannedPilots]:
        return [
            PlannedPilots(
                site=element.ad.site,
                ce=element.ad.ce,
                vo=sort[0],
                count=count,
                hosts=sort[1],
                reasons=order_reasons(element, sort, at_random=self.at_random),
                private=sort[2],
                purpose=element.purposes[sort],
            )
            for sort, count in element.ordered.items()
        ]
