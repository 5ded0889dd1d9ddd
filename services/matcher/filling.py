"""Fills a match request: one drawn job for each free slot, and short jobs up to the seconds of work that are wanted beyond.

A turn is one draw of a queue. If its jobs are short, the turn gives more of them, as many as keep a slot busy for its part of the
wanted seconds: turns are about as long, and short jobs do not wait for the turns of long ones one by one. A long job, or one of
which nothing is known, is given to a free slot only. If one is drawn for a pilot without a free slot, it stays in its queue, and
this queue has the pilot's next turn. So long jobs lose no turns to short ones.
"""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from services.matcher.turns import QueueTurns
from services.matcher.verified_request import VerifiedRequest
from wms.ids import TaskQueueId
from wms.matching.clauses import left_over
from wms.matching.grouping import Requirements, slots_needed
from wms.queue_index.index import Pick
from wms.site import Resource


class Drawn(Struct, frozen=True, gc=False):
    """A job drawn for a request. It starts at once if `slot_seconds` is None; else it follows others, and takes so much of their work."""

    pick: Pick
    slot_seconds: float | None


class Room(Struct, frozen=True, gc=False):
    """What a request may still be given: `slots` jobs that start at once on `resource`, `seconds` of short ones, `most` jobs of all."""

    resource: Resource | None
    """None if nothing is left of it."""
    slots: int
    seconds: float
    most: int

    def after(self, drawn: Drawn, needs: Requirements, *, packed: bool) -> "Room":
        """Return what is left once this job is given. `packed` says that jobs which start at once share the resource."""
        if drawn.slot_seconds is not None:
            return replace(self, seconds=self.seconds - drawn.slot_seconds, most=self.most - 1)
        left = self.resource
        if packed and left is not None and self.slots > 1:
            left = left_over(left, needs)  # it takes time, and is needed for a further slot only
        return Room(left, self.slots - 1, self.seconds, self.most - 1)


class Filling:
    """One request, as it is filled. `room` is what it may still be given, after the jobs that were claimed for it so far."""

    def __init__(self, request: VerifiedRequest, turns: QueueTurns) -> None:
        self.request = request
        self._turns = turns
        self._turn_seconds = request.seconds if request.asks_ahead else request.seconds / request.slots
        slots = 0 if request.asks_ahead else request.slots
        self.room = Room(request.resource, slots, request.seconds, request.most)

    def claimed(self, jobs: Iterable[Drawn]) -> None:
        """Reduce the room by jobs that were claimed for the request."""
        for each in jobs:
            self.room = self._after(self.room, each)

    def draw(self) -> list[Drawn]:
        """Draw jobs until the room is filled. The room is reduced only when they are claimed."""
        return self._drawn_ahead() if self.request.asks_ahead else self._drawn_for_slots()

    def _drawn_for_slots(self) -> list[Drawn]:
        found: list[Drawn] = []
        room = self.room
        while room.slots > 0 and room.most > 0 and room.resource is not None:
            pick = self._turns.draw(self.request.pilot_id, room.resource)
            if pick is None:
                break
            found.append(Drawn(pick, None))
            room = self._after(room, found[-1])
            if room.seconds > 0 and (each := self._turns.likely_seconds.get(pick.tq_id)) is not None:
                room = self._turn(found, room, pick.tq_id, self._turn_seconds - each)
        return found

    def _drawn_ahead(self) -> list[Drawn]:
        found: list[Drawn] = []
        room = self.room
        while room.seconds > 0 and room.most > 0 and room.resource is not None:
            pick = self._turns.draw(self.request.pilot_id, room.resource)
            if pick is None:
                break
            cost = self._cost(pick.tq_id)
            if cost is None or cost > room.seconds:
                self._turns.put_back(self.request.pilot_id, pick)
                break
            found.append(Drawn(pick, cost))
            room = self._after(room, found[-1])
            room = self._turn(found, room, pick.tq_id, room.seconds)
        return found

    def _turn(self, found: list[Drawn], room: Room, tq_id: TaskQueueId, seconds: float) -> Room:
        """Add further jobs of a drawn queue to `found`, for `seconds` of one slot. Return the room after them."""
        each, cost = self._turns.likely_seconds.get(tq_id), self._cost(tq_id)
        if each is None or cost is None:
            return room
        while seconds >= each and room.seconds >= cost and room.most > 0:
            pick = self._turns.more(tq_id)
            if pick is None:
                break
            found.append(Drawn(pick, cost))
            room = self._after(room, found[-1])
            seconds -= each
        return room

    def _cost(self, tq_id: TaskQueueId) -> float | None:
        each = self._turns.likely_seconds.get(tq_id)
        return None if each is None else each * slots_needed(self._turns.needs(tq_id))

    def _after(self, room: Room, drawn: Drawn) -> Room:
        return room.after(drawn, self._turns.needs(drawn.pick.tq_id), packed=self.request.packed)
