"""The report on a plan: what it says of each element and each class of work, and which obstacle it names."""

from typing import Any

import pytest

from tests.unit.matching.strategies import asks
from tests.unit.provisioning.elements import element, elements, limited, of_owner, under_way
from tests.unit.provisioning.test_plan import GPU, WITH_GPUS, hosts, with_gpus
from wms.matching.grouping import processor_tags
from wms.provisioning.demand import Avoidance, QueuedWork
from wms.provisioning.limit_headroom import LimitHeadroom
from wms.provisioning.plan import PilotCaps, plan
from wms.provisioning.plan_report import SHARES, order_reasons
from wms.provisioning.supply import PlannedElement
from wms.site import PilotOwner

ONE = [QueuedWork(asks(), 1)]
MANY = [QueuedWork(asks(), 50)]


def test_an_order_says_the_work_the_room_and_what_is_special_about_it() -> None:
    (order,) = plan(MANY, [element(slots_per_pilot=2, slots=6)], [under_way(waiting=1)]).orders
    assert order.reasons == (
        "sent because 4 waiting jobs fit no existing pilot (2 slots each)",
        "room for 2 pilots, 1 on the way, 0 idle slots",
    )
    (order,) = plan([QueuedWork(GPU, 1)], [with_gpus()], hosts=hosts, choice="random").orders
    assert order.reasons[0] == "sent because 1 waiting job fits no existing pilot (1 slot each)"
    assert order.reasons[2:] == ("drawn at random among the elements that fit and have room", str(WITH_GPUS))


def test_private_pilots_are_named_by_whose_they_are() -> None:
    there = PlannedElement(0, element(), [], LimitHeadroom())
    reasons = order_reasons(there, ("v", None, PilotOwner("physics", "alice")), at_random=False)
    assert reasons[-1] == "private pilots of alice@physics"


def test_an_element_says_what_is_there_and_what_was_ordered() -> None:
    made = plan(MANY, [element()], [under_way(submitted=1, waiting=2, running=3, idle_slots=1, ending=1)])
    (found,) = made.decisions
    assert (found.submitted, found.waiting, found.running, found.ending) == (1, 2, 3, 1)
    assert (found.idle_slots, found.room, found.ordered) == (1, 4, 4)
    assert found.reasons == ("4 of VO v: sent because 4 waiting jobs fit no existing pilot (1 slot each)",)


def test_the_jobs_of_a_class_are_taken_up_here_or_elsewhere_or_are_left() -> None:
    made = plan(MANY, elements(2, max_pilots=10), [under_way(waiting=3)])
    (here,), (there,) = (each.shares for each in made.decisions)
    assert (here.wanted, here.taken, here.sent, here.elsewhere) == (50, 3, 7, 17)
    assert (there.wanted, there.taken, there.sent, there.elsewhere) == (50, 0, 10, 20)


def test_classes_are_told_apart_by_vo_time_and_processors_those_with_most_jobs_first() -> None:
    queues = [
        QueuedWork(asks(), 1),
        QueuedWork(asks(owner="p"), 1),
        QueuedWork(asks(vo="w"), 5),
        QueuedWork(asks(cpu_segment=1_000), 4),
        QueuedWork(asks(tags=processor_tags(2)), 3),
    ]
    shares = plan(queues, [element(cores_per_pilot=2, slots_per_pilot=2)]).decisions[0].shares
    assert [(each.vo, each.processors, each.wanted) for each in shares] == [
        ("w", 1, 5),
        ("v", 1, 4),
        ("v", 2, 3),
        ("v", 1, 2),
    ]


def test_no_more_than_so_many_classes_are_told() -> None:
    queues = [QueuedWork(asks(vo=f"v{n}"), n + 1) for n in range(SHARES + 5)]
    shares = plan(queues, [element()]).decisions[0].shares
    assert [each.wanted for each in shares] == [*range(SHARES + 5, 5, -1)]


BANNED = {("A", "ce0"): Avoidance("BANNED", "said so")}


@pytest.mark.parametrize(
    ("queues", "ad", "pilots", "options", "held", "why"),
    [
        (ONE, {}, {}, {}, "", ""),
        (ONE, {}, {"waiting": 1}, {}, "NO_DEMAND", "take it up"),
        (MANY, {"slots": 2}, {}, {}, "NO_ROOM", "full: 0 of 2 pilots"),
        (MANY, {}, {}, {"leeway": limited(of_owner("o", 0))}, "LIMIT", "owner=o at A"),
        (MANY, {}, {}, {"caps": PilotCaps(orders=1)}, "CAP", "cap on pilots"),
        (MANY, {}, {}, {"avoided": BANNED}, "BANNED", "said so"),
    ],
)
def test_the_obstacle_of_a_class_is_named(
    queues: list[QueuedWork],
    ad: dict[str, Any],
    pilots: dict[str, Any],
    options: dict[str, Any],
    held: str,
    why: str,
) -> None:
    (share,) = plan(queues, [element(**ad)], [under_way(**pilots)], **options).decisions[0].shares
    assert share.held == held
    assert why in share.why


@pytest.mark.parametrize(
    ("queues", "ad", "pilots", "options", "why"),
    [
        ([], {}, {}, {}, "no job waits"),
        (ONE, {"slots_per_pilot": 0}, {}, {}, "faulty"),
        ([QueuedWork(asks(tags=("gpu",)), 4)], {}, {}, {}, "may run there: tags (4 jobs)"),
        (ONE, {}, {"waiting": 1}, {}, "(1 on the way here, 0 idle slots)"),
        (MANY, {"slots": 0}, {}, {}, "it is full: 0 of 0 pilots"),
        (MANY, {"max_waiting_pilots": 1}, {"vo": "w", "waiting": 1}, {}, "on the way, of at most 1"),
        (MANY, {}, {}, {"leeway": limited(of_owner("o", 0))}, "a limit lets no more jobs start"),
        (MANY, {}, {}, {"caps": PilotCaps(orders=0)}, "the cap on pilots is reached"),
        (MANY, {}, {}, {"avoided": BANNED}, "it is avoided, said so"),
    ],
)
def test_why_no_pilot_at_all_was_ordered(
    queues: list[QueuedWork], ad: dict[str, Any], pilots: dict[str, Any], options: dict[str, Any], why: str
) -> None:
    made = plan(queues, [element(**ad)], [under_way(**pilots)], **options)
    (reason,) = made.decisions[0].reasons
    assert reason.startswith("none sent because ")
    assert why in reason
