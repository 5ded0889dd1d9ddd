"""A request is filled with turns: a job for each free slot, short ones behind, and never more than is left of it."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from services.matcher.filling import Drawn, Filling
from services.matcher.turns import QueueTurns
from services.matcher.verified_request import VerifiedRequest
from wms.ids import JobId, PilotId, RequestId, TaskQueueId
from wms.matching.grouping import Requirements
from wms.queue_index.index import Pick, QueueIndex
from wms.site import Resource

SHORT, LONG, NEW, WIDE = map(TaskQueueId, range(1, 5))
LIKELY = {SHORT: 0.1, LONG: 60.0, WIDE: 0.1}


class Deck(QueueTurns):
    """Queues that are drawn in a given order, each with many jobs."""

    def __init__(self, *order: TaskQueueId) -> None:
        super().__init__(QueueIndex(), np.random.default_rng(1), LIKELY)
        self.order = list(order)
        for tq_id in (SHORT, LONG, NEW, WIDE):
            self.index.add_queue(tq_id, needs(tq_id))
            self.index.add_range(tq_id, 1.0, JobId(tq_id * 1_000), JobId(tq_id * 1_000 + 999))

    def draw(self, pilot_id: PilotId, resource: Resource) -> Pick | None:
        fitting = [each for each in self.order if each != WIDE or resource.processors >= 2]
        if not fitting:
            return None
        self.order.remove(fitting[0])
        return self.more(fitting[0])

    def put_back(self, pilot_id: PilotId, pick: Pick) -> None:
        self.order.insert(0, pick.tq_id)


def needs(tq_id: TaskQueueId) -> Requirements:
    tags = ("2Processors",) if tq_id == WIDE else ()
    return Requirements(
        owner=str(tq_id), owner_group="g", vo="v", setup="s", cpu_segment=0, tags=tags, min_ram_mb=100
    )


def filling(deck: Deck, slots: int, seconds: float = 0.0, *, packed: bool = True, most: int = 99) -> Filling:
    resource = Resource(setup="s", vo="v", cpu_time=1, processors=slots, memory_mb=250 * slots)
    request = VerifiedRequest(
        RequestId("r"), PilotId("p"), resource, slots, packed=packed, again=False, seconds=seconds, most=most
    )
    return Filling(request, deck)


def queues(drawn: list[Drawn]) -> list[TaskQueueId]:
    return [each.pick.tq_id for each in drawn]


def test_each_free_slot_has_a_turn_and_long_jobs_one_each() -> None:
    assert queues(filling(Deck(LONG, NEW, LONG), 2, seconds=2.0).draw()) == [LONG, NEW]


def test_a_turn_of_short_jobs_lasts_as_long_as_a_slot_wants() -> None:
    drawn = filling(Deck(SHORT, LONG), 2, seconds=2.0).draw()
    assert queues(drawn) == [SHORT] * 10 + [LONG]
    assert [each.slot_seconds for each in drawn] == [None] + [0.1] * 9 + [None]


def test_no_long_job_waits_behind_another_and_its_turn_is_kept() -> None:
    deck = Deck(SHORT, NEW, SHORT)
    # The short queue's first turn takes the seconds up, but for what no job fits into.
    assert queues(filling(deck, 1, seconds=0.45, packed=False).draw()) == [SHORT] * 4
    assert deck.order == [NEW, SHORT]
    assert queues(filling(deck, 1, seconds=0.45, packed=False).draw()) == []
    assert queues(filling(deck, 1, seconds=0.45).draw()) == [NEW]


def test_without_seconds_each_job_is_drawn_by_itself() -> None:
    assert queues(filling(Deck(SHORT, LONG, SHORT, SHORT), 3, packed=False).draw()) == [SHORT, LONG, SHORT]


def test_a_pilot_is_offered_no_more_than_it_may_have() -> None:
    assert len(filling(Deck(SHORT), 1, seconds=1.0, most=3).draw()) == 3


def test_a_job_of_two_processors_takes_the_seconds_of_both() -> None:
    assert queues(filling(Deck(WIDE), 2, seconds=0.5, packed=False).draw()) == [WIDE] * 2


@given(
    packed=st.booleans(),
    order=st.lists(st.sampled_from([SHORT, LONG, NEW, WIDE]), max_size=40),
    slots=st.integers(1, 16),
    seconds=st.sampled_from([0.0, 0.3, 2.0]),
    lost=st.lists(st.booleans(), max_size=200),
)
def test_however_many_draws_it_takes_it_gets_no_more_than_it_asked_for(
    *, packed: bool, order: list[TaskQueueId], slots: int, seconds: float, lost: list[bool]
) -> None:
    """Other matchers take drawn jobs at will, so that a request is drawn for again and again."""
    deck, fates = Deck(*order), list(lost)
    given_: list[Drawn] = []
    request = filling(deck, slots, seconds, packed=packed)
    while drawn := request.draw():
        kept = [each for each in drawn if not (fates.pop() if fates else False)]
        request.claimed(kept)
        given_ += kept
    at_once = [each for each in given_ if each.slot_seconds is None]
    assert len(at_once) <= slots
    assert sum(each.slot_seconds or 0.0 for each in given_) <= seconds + 1e-9
    if packed:
        taken = [needs(each.pick.tq_id) for each in at_once]
        assert sum(2 if each.tags else 1 for each in taken) <= slots
        assert sum(each.min_ram_mb for each in taken) <= 250 * slots


def test_turns_are_as_many_as_weights_say_whatever_is_short() -> None:
    """A pilot asks now with a free slot, now without: no queue's turn is lost because its jobs are long, none's is longer by lot."""
    index = QueueIndex()
    for number, owner in enumerate(("tiny", "ann", "bob", "cem"), 1):
        requirements = Requirements(owner=owner, owner_group="g", vo="v", setup="s", cpu_segment=0)
        index.add_queue(TaskQueueId(number), requirements)
        index.add_range(TaskQueueId(number), 1.0, JobId(number * 10**6), JobId(number * 10**6 + 10**5))
    drawn = QueueTurns(index, np.random.default_rng(1), {TaskQueueId(1): 0.5})
    turns = Counter[TaskQueueId]()
    for number in range(8_000):
        resource = Resource(setup="s", vo="v", cpu_time=1, processors=1)
        request = VerifiedRequest(
            RequestId("r"), PilotId("p"), resource, 1, packed=number % 2 == 0, again=False, seconds=0.5
        )
        turns.update(each.pick.tq_id for each in Filling(request, drawn).draw())
    expected = turns.total() / 4
    assert all(abs(count - expected) < 5 * (expected * 0.75) ** 0.5 for count in turns.values()), turns
