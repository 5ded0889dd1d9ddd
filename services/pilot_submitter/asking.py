"""What pilots ask their elements for beyond the usual: the hosts that waiting jobs require, a pilot for each class of them.

A plan says how many pilots go to an element for a VO. Jobs whose requirements leave something about hosts there make classes,
by what they ask for; the pilots are shared among these and the work that asks for nothing in proportion to the jobs, those
on the way counted, and never less than one for a class that has none.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec
import structlog

from services.pilot_submitter.doors import Door, Doors, Place
from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.db.ad import Matchable
from wms.db.pilot import Pilot, Sent
from wms.dispatch.mapping import Asked
from wms.dispatch.port import Request
from wms.errors import Rejected
from wms.ids import PilotId
from wms.provisioning.demand import Waiting, reach
from wms.provisioning.host_requirements import HostRequirements, host_requirements
from wms.site import ComputingElement

log = structlog.get_logger()

_KEPT = 4_096


class _Class(msgspec.Struct):
    """Work that asks for the same hosts; `asked` None is nothing beyond the usual."""

    asked: Asked | None
    jobs: int = 0


class Asking:
    """Gives pilots that are about to be sent their requests, and remembers those under way."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors
        self._asked: dict[PilotId, Asked] = {}
        self._told: dict[Place, bytes] = {}

    def request(self, pilot_id: PilotId, door: Door, element: ComputingElement) -> Request:
        """Return what a pilot asks for."""
        asked = self._asked.get(pilot_id)
        return door.request(element) if asked is None else asked.request

    def ad(self, element: ComputingElement) -> str:
        """Return what an element told when pilots were last shared out, as a ClassAd; nothing if it told none."""
        told = self._told.get((element.site, element.ce))
        try:
            return ad_of(told).text if told else ""
        except Rejected as error:
            log.warning("ad not passed on", site=element.site, ce=element.ce, reason=str(error))
            return ""

    def share(
        self,
        sent: Sequence[Sent],
        waiting: Sequence[Waiting],
        elements: Mapping[Place, ComputingElement],
        ads: Iterable[Matchable],
        alive: Iterable[Pilot],
    ) -> list[Sent]:
        """Choose for each pilot what it asks for; return them with that among their reasons."""
        self._told = {(each.site, each.ce): msgspec.json.encode(each) for each in ads}
        under_way = self._under_way(list(alive))
        if not any(each.requirements.requirements for each in waiting):
            return list(sent)
        groups: dict[tuple[Place, str], list[Sent]] = {}
        for each in sent:
            groups.setdefault(((each.site, each.ce), each.vo), []).append(each)
        return [
            chosen
            for (place, vo), some in groups.items()
            for chosen in self._choose(
                some, self._classes(elements[place], vo, waiting), under_way.get((place, vo), Counter())
            )
        ]

    def _under_way(self, alive: Sequence[Pilot]) -> dict[tuple[Place, str], Counter[bytes]]:
        """Return how many pilots that do not run yet ask for what, and forget those that are no more."""
        names = {each.pilot_id for each in alive}
        self._asked = {name: asked for name, asked in self._asked.items() if name in names}
        found: dict[tuple[Place, str], Counter[bytes]] = {}
        for each in alive:
            if each.state not in ("Running", "Draining"):
                asked = self._asked.get(each.pilot_id)
                found.setdefault(((each.site, each.ce), each.vo), Counter())[_key(asked)] += 1
        return found

    def _classes(self, element: ComputingElement, vo: str, waiting: Iterable[Waiting]) -> list[_Class]:
        """Return the classes of work that may run there."""
        door = self._doors.to(element.site, element.ce, element.dispatcher)
        told = self._told.get((element.site, element.ce))
        classes: dict[bytes, _Class] = {}
        for each in waiting:
            text = each.requirements.requirements
            if each.requirements.vo == vo and reach(each.requirements, element) is None:
                asked = asked_for(door, element, told, text) if door and text else None
                known = classes.setdefault(_key(asked), _Class(asked))
                known.jobs += each.jobs
        return list(classes.values())

    def _choose(
        self, sent: Sequence[Sent], classes: Sequence[_Class], under_way: Counter[bytes]
    ) -> list[Sent]:
        """Give the next pilot to the class that has the most jobs for each of its own; of equals, to who asks for something."""
        chosen = []
        there = Counter(under_way)
        for pilot in sent:
            best = max(
                classes,
                key=lambda each: (each.jobs / (there[_key(each.asked)] + 1), each.asked is not None),
                default=_Class(None),
            )
            there[_key(best.asked)] += 1
            chosen.append(pilot if best.asked is None else self._with(pilot, best.asked))
        return chosen

    def _with(self, pilot: Sent, asked: Asked) -> Sent:
        self._asked[pilot.pilot_id] = asked
        log.info(
            "host asked for", pilot=pilot.pilot_id, asked=asked.asked, unasked=list(map(str, asked.unasked))
        )
        return msgspec.structs.replace(pilot, reason=f"{pilot.reason}; {said(asked)}"[:2_000])


def _key(asked: Asked | None) -> bytes:
    return msgspec.json.encode(asked, order="deterministic")


def said(asked: Asked) -> str:
    """Return in a line what is asked for, and what is not."""
    unasked = [f"looked at on the node: {each}" for each in asked.unasked]
    return "; ".join(filter(None, (f"asks for {', '.join(asked.asked)}" if asked.asked else "", *unasked)))


def asked_for(door: Door, element: ComputingElement, told: bytes | None, text: str) -> Asked | None:
    """Return what a pilot for jobs with such requirements asks for there; None if nothing beyond the usual."""
    mapping = door.terms.mapping
    if mapping is None:
        return None
    try:
        left = _left(text, told, mapping.forwarded)
    except Rejected as error:
        log.warning("requirements not forwarded", site=element.site, ce=element.ce, reason=str(error))
        return None
    usual = door.request(element)
    asked = mapping.ask(usual, left.bounds) if left.possible else Asked(usual)
    asked = msgspec.structs.replace(asked, unasked=(*left.unasked, *asked.unasked))
    return asked if asked.request != usual or asked.unasked else None


@lru_cache(maxsize=_KEPT)
def _left(text: str, told: bytes | None, forwarded: frozenset[str]) -> HostRequirements:
    return host_requirements(Expression.parse(text), ad_of(told), forwarded)


@lru_cache(maxsize=_KEPT)
def ad_of(told: bytes | None) -> Ad:
    """Return the ad of an element as it told it; empty if it told none, raises Rejected for one that is none."""
    if told is None:
        return Ad(())
    ad = msgspec.json.decode(told, type=Matchable)
    texts = {**ad.expressions, **({"Requirements": ad.requirements} if ad.requirements else {})}
    return Ad.of({**ad.attributes, **{name: Expression.parse(text, name) for name, text in texts.items()}})
