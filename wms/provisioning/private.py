"""Private pilots that users ordered: which orders get pilots now, and at which elements.

A private pilot takes the jobs of its owner alone, or of the whole group if the group shares its jobs. Orders are filled
one pilot at a time. The next pilot is for the owner with the fewest private pilots, at the element with the most room.
All orders together get at most half of the pilots that the system may have, so that idle private pilots do not block
other work.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from wms.ids import CeId, Identity
from wms.matching.shares import VoGroup
from wms.provisioning.demand import Avoidance
from wms.provisioning.plan import PilotCaps
from wms.provisioning.supply import PilotSupply, room_of
from wms.site import ComputingElement, PilotOwner, private


class PilotOrder(Struct, frozen=True, kw_only=True):
    """A user's order for private pilots, with the number of pilots that were not sent yet."""

    vo: str
    owner_group: str
    owner: str
    group_wide: bool = False
    """Whether the pilots take the jobs of the whole group."""
    site: str = ""
    """The site where the pilots are to run; empty: any site."""
    ce: str = ""
    """The computing element where the pilots are to run; empty: any element."""
    missing: int = 1
    """How many pilots are still to be sent for the order."""
    order_id: int = 0
    held: str = ""
    """Why no pilot could be sent in the last plan; empty if one could."""

    @property
    def pilot_owner(self) -> PilotOwner:
        """The owner, or the whole group, whose jobs the pilots take."""
        return PilotOwner(self.owner_group, "" if self.group_wide else self.owner)


class OrderedPilot(NamedTuple):
    """One pilot to send for a user's order, and the element to which it goes."""

    order: PilotOrder
    element: ComputingElement


class Allocation(NamedTuple):
    """The private pilots to send for users' orders now. By the id of the order, it also says why no more are sent."""

    pilots: tuple[OrderedPilot, ...] = ()
    held: Mapping[int, str] = {}

    @property
    def groups(self) -> set[VoGroup]:
        """The groups (VO and group name) whose jobs the pilots take."""
        return {(order.vo, order.owner_group) for order, _ in self.pilots}

    def as_pilots(self, sharing: frozenset[VoGroup]) -> list[PilotSupply]:
        """Return the pilots as `PilotSupply`, the planner's form for existing pilots. They count as on their way.

        `sharing` are the groups whose members share their jobs.
        """
        return [
            PilotSupply(
                site=at.site,
                ce=at.ce,
                vo=order.vo,
                submitted=1,
                resource=private(
                    at.pilot_resource(vo=order.vo),
                    order.pilot_owner,
                    job_sharing=(order.vo, order.owner_group) in sharing,
                ),
            )
            for order, at in self.pilots
        ]


def allocate(
    orders: Sequence[PilotOrder],
    elements: Sequence[ComputingElement],
    pilots: Iterable[PilotSupply],
    caps: PilotCaps,
    avoided: Mapping[CeId, Avoidance],
) -> Allocation:
    """Decide for which orders private pilots are sent now, and to which elements.

    `pilots` are all live pilots, `caps` the limits on pilots, and `avoided` the elements that get none.
    """
    return _Allocating(elements, list(pilots), caps, avoided).allocate(orders) if orders else Allocation()


class _Allocating:
    def __init__(
        self,
        elements: Sequence[ComputingElement],
        pilots: Sequence[PilotSupply],
        caps: PilotCaps,
        avoided: Mapping[CeId, Avoidance],
    ) -> None:
        self.elements = elements
        self.avoided = avoided
        self.there: dict[CeId, list[PilotSupply]] = {}
        for each in pilots:
            self.there.setdefault(CeId(each.site, each.ce), []).append(each)
        self.going: Counter[CeId] = Counter()
        self.owned: Counter[Identity] = Counter()
        for each in pilots:
            if each.resource and not each.resource.generic:
                self.owned[Identity(each.resource.owner, each.resource.owner_group, each.vo)] += _count(each)
        alive = sum(map(_count, pilots))
        self.cap = caps.orders
        if caps.pilots:
            share = max(1, caps.pilots // 2) - self.owned.total()
            self.cap = max(0, min(caps.orders, caps.pilots - alive, share))

    def allocate(self, orders: Sequence[PilotOrder]) -> Allocation:
        found: list[OrderedPilot] = []
        left = Counter({order.order_id: order.missing for order in orders})
        held: dict[int, str] = {}
        open_ = list(orders)
        while open_:
            order = min(open_, key=lambda each: (self.owned[_whose(each)], each.order_id))
            where = self._where(order)
            if isinstance(where, str):
                held[order.order_id] = where
                open_.remove(order)
                continue
            found.append(OrderedPilot(order, where))
            self._count_in(order, where)
            left[order.order_id] -= 1
            if not left[order.order_id]:
                open_.remove(order)
        return Allocation(tuple(found), held)

    def _count_in(self, order: PilotOrder, at: ComputingElement) -> None:
        self.cap -= 1
        self.going[at.ce_id] += 1
        self.owned[_whose(order)] += 1

    def _where(self, order: PilotOrder) -> ComputingElement | str:
        """Return the element for the next pilot of an order, or the reason why there is none."""
        if self.cap <= 0:
            return "the cap on pilots, or on private ones among them, is reached"
        named = [each for each in self.elements if _is_named(order, each)]
        if not named:
            return "no such computing element takes pilots now: `wms sites` lists those that advertise themselves"
        serving = [each for each in named if not each.vos or order.vo in each.vos]
        if not serving:
            return f"no such computing element takes pilots of VO {order.vo}"
        allowed = [each for each in serving if each.ce_id not in self.avoided]
        if not allowed:
            return f"each is avoided now: {self.avoided[serving[0].ce_id].why}"
        room, _, best = max((self._room(each), -n, each) for n, each in enumerate(allowed))
        return best if room > 0 else f"no room at {best.site}/{best.ce}"

    def _room(self, element: ComputingElement) -> int:
        place = element.ce_id
        there = self.there.get(place, [])
        under_way = sum(each.submitted + each.waiting for each in there) + self.going[place]
        return room_of(element, under_way, sum(each.running for each in there))[0]


def _count(pilots: PilotSupply) -> int:
    return pilots.submitted + pilots.waiting + pilots.running


def _whose(order: PilotOrder) -> Identity:
    return Identity(order.pilot_owner.owner, order.owner_group, order.vo)


def _is_named(order: PilotOrder, element: ComputingElement) -> bool:
    return (not order.site or order.site.casefold() == element.site.casefold()) and (
        not order.ce or order.ce.casefold() == element.ce.casefold()
    )
