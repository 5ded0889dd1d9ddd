"""Pilots by demand: each job counted once, what is under way counted in, no pilot for what cannot run."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from tests.unit.matching.strategies import asks
from tests.unit.provisioning.elements import counts, element, elements, limited, of_owner, under_way
from wms.ids import CeId
from wms.matching.ads import advertised
from wms.matching.canary import OWNER as CANARY
from wms.matching.grouping import Requirements, processor_tags
from wms.provisioning.demand import Avoidance, QueuedWork, reach
from wms.provisioning.pilot_class import PilotClass
from wms.provisioning.plan import PilotCaps, plan
from wms.provisioning.supply import PilotSupply
from wms.site import AdvertisedElement, ComputingElement, Resource


def with_gpus(ce: str = "ce0", **fields: Any) -> ComputingElement:
    return AdvertisedElement(**asdict(element(ce, **fields)), ad=advertised({"GPUNumber": 2}, {}, "", ""))


def test_each_job_is_counted_once_over_identical_elements():
    made = plan([QueuedWork(asks(), 7)], elements(5))
    assert sum(order.count for order in made.orders) == 7
    assert sorted(counts(made).values()) == [1, 1, 1, 2, 2]


def test_orders_are_in_proportion_to_room():
    ads = [element("small", max_pilots=10), element("large", max_pilots=30)]
    assert counts(plan([QueuedWork(asks(), 20)], ads)) == {"small": 5, "large": 15}


def test_one_of_equal_elements_is_drawn_each_as_often_as_the_others():
    rng = Random(7).random
    drawn = Counter(
        order.ce for _ in range(4_000) for order in plan([QueuedWork(asks(), 1)], elements(4), rng=rng).orders
    )
    assert sum(drawn.values()) == 4_000
    # Of three degrees of freedom, one in a thousand is above 16.3.
    assert sum((drawn[f"ce{n}"] - 1_000) ** 2 / 1_000 for n in range(4)) < 16.3


def test_an_element_with_more_room_is_no_matter_of_chance():
    ads = [element("small", max_pilots=10), element("large", max_pilots=30)]
    for seed in range(20):
        assert counts(plan([QueuedWork(asks(), 20)], ads, rng=Random(seed).random)) == {
            "small": 5,
            "large": 15,
        }


def test_with_the_random_choice_any_element_that_fits_is_drawn_whatever_room_it_has():
    ads = [element("small", max_pilots=10), element("large", max_pilots=1_000), element("full", slots=0)]
    rng = Random(5).random
    drawn: Counter[str] = Counter()
    for _ in range(200):
        made = plan([QueuedWork(asks(), 5)], ads, rng=rng, choice="random")
        drawn.update(counts(made))
        assert all("drawn at random" in order.reasons[-1] for order in made.orders)
    assert (drawn.total(), drawn["full"]) == (1_000, 0)
    # Of one degree of freedom, one in a thousand is above 10.8.
    assert sum((drawn[ce] - 500) ** 2 / 500 for ce in ("small", "large")) < 10.8
    assert any("drawn at random" in reason for each in made.decisions for reason in each.reasons)
    plain = plan([QueuedWork(asks(), 5)], ads, rng=rng)
    assert counts(plain)["small"] == 0, "by room the larger one has them"
    assert not any("random" in reason for each in plain.decisions for reason in each.reasons)


def test_of_the_stations_that_a_job_names_one_is_drawn():
    ads = [element(site=site) for site in ("fnal", "gridka", "lyon", "wuppertal")]
    named = asks(sites=("gridka", "lyon"))
    rng = Random(3).random
    drawn = Counter(
        order.site for _ in range(400) for order in plan([QueuedWork(named, 1)], ads, rng=rng).orders
    )
    assert drawn.keys() == {"gridka", "lyon"}
    assert min(drawn.values()) > 150


@pytest.mark.parametrize(
    "pilots",
    [
        [under_way(submitted=2)],
        [under_way(waiting=2)],
        [under_way(running=2, idle_slots=2)],
        [under_way("ce1", submitted=1), under_way("ce2", running=3, idle_slots=1)],
    ],
)
def test_what_is_under_way_counts_in(pilots):
    made = plan([QueuedWork(asks(), 5)], elements(3), pilots)
    assert sum(order.count for order in made.orders) == 3


def test_enough_under_way_orders_nothing_and_says_so():
    made = plan([QueuedWork(asks(), 2)], elements(2), [under_way(waiting=1, running=1, idle_slots=1)])
    assert made.orders == ()
    assert "1 on the way here, 1 idle slots" in made.decisions[0].reasons[0]


def test_busy_and_ending_pilots_are_no_places():
    made = plan([QueuedWork(asks(), 3)], [element()], [under_way(running=2, ending=2)])
    assert counts(made) == {"ce0": 3}


def test_pilots_of_another_vo_or_out_of_reach_are_no_places():
    queues = [QueuedWork(asks(grid_ces=("ce1",)), 2)]
    made = plan(queues, elements(2), [under_way("ce0", waiting=5), under_way("ce1", vo="w", waiting=5)])
    assert counts(made) == {"ce0": 0, "ce1": 2}


def test_places_under_way_go_to_the_work_that_has_no_other():
    queues = [QueuedWork(asks(), 2), QueuedWork(asks(grid_ces=("ce0",)), 2)]
    made = plan(queues, elements(2), [under_way("ce0", waiting=2), under_way("ce1", waiting=2)])
    assert made.orders == ()


def test_slots_of_a_pilot_count():
    assert counts(plan([QueuedWork(asks(), 9)], [element(slots=80, slots_per_pilot=4)])) == {"ce0": 3}
    many = elements(4, slots=80, slots_per_pilot=8)
    assert sum(counts(plan([QueuedWork(asks(), 9)], many)).values()) == 2


def test_spare_places_of_an_ordered_pilot_take_other_work():
    queues = [QueuedWork(asks(tags=(tag,)), 1) for tag in "abc"]
    made = plan(queues, elements(2, tags=("a", "b", "c"), slots=80, slots_per_pilot=4))
    assert sum(counts(made).values()) == 1


def test_wide_jobs_take_their_processors():
    queues = [QueuedWork(asks(tags=processor_tags(4)), 6)]
    ads = [element(slots=80, slots_per_pilot=8, cores_per_pilot=8)]
    assert counts(plan(queues, ads)) == {"ce0": 3}


@pytest.mark.parametrize(
    ("limits", "pilots", "expected", "reason"),
    [
        ({"max_pilots": 3}, [], 3, ""),
        ({"max_pilots": 3}, [under_way(running=2)], 1, ""),
        ({"max_pilots": 3}, [under_way(running=2), under_way(vo="w", waiting=1)], 0, "full: 3 of 3"),
        ({"max_waiting_pilots": 2}, [], 2, ""),
        ({"max_waiting_pilots": 2}, [under_way(vo="w", submitted=1, waiting=1)], 0, "of at most 2"),
        ({"slots": 4}, [], 4, ""),
        ({"slots": 0}, [], 0, "full: 0 of 0"),
    ],
)
def test_limits_of_an_element(limits, pilots, expected, reason):
    made = plan([QueuedWork(asks(), 50)], [element(**limits)], pilots)
    assert counts(made) == {"ce0": expected}
    assert reason in made.decisions[0].reasons[0]


def test_caps_over_all():
    queues, ads = [QueuedWork(asks(), 50)], elements(10)
    assert sum(counts(plan(queues, ads, caps=PilotCaps(orders=12))).values()) == 12
    some = [under_way("gone", running=8)]
    assert sum(counts(plan(queues, ads, some, PilotCaps(pilots=20))).values()) == 12
    made = plan(queues, ads, some, PilotCaps(pilots=5))
    assert made.orders == ()
    assert made.decisions[0].reasons == ("none sent because the cap on pilots is reached",)


def test_vos_share_scarce_room():
    queues = [QueuedWork(asks(vo="v"), 100), QueuedWork(asks(vo="w"), 100), QueuedWork(asks(vo="x"), 1)]
    made = plan(queues, [element(slots=9)])
    assert {order.vo: order.count for order in made.orders} == {"v": 4, "w": 4, "x": 1}
    made = plan(queues, [element(slots=9)], [under_way(vo="v", running=4)])
    assert {order.vo: order.count for order in made.orders} == {"w": 4, "x": 1}


def test_nothing_for_work_that_can_run_nowhere():
    ads = [element(), element("ce1", site="B", tags=("ssd",))]
    made = plan([QueuedWork(asks(tags=("gpu",)), 4), QueuedWork(asks(tags=("gpu",), owner="p"), 3)], ads)
    assert made.orders == ()
    (lost,) = made.unservable
    assert lost.jobs == 7
    assert lost.reasons == ("tags, at 2 computing elements: the resource lacks gpu",)
    assert "no waiting job may run there: tags (7 jobs)" in made.decisions[0].reasons[0]


def test_reasons_when_there_is_nothing():
    assert plan([], elements(1)).decisions[0].reasons == ("none sent because no job waits",)
    (lost,) = plan([QueuedWork(asks(), 1)], []).unservable
    assert lost.reasons == ("no computing element is advertised",)
    made = plan([QueuedWork(asks(), 1)], [element(slots_per_pilot=0)])
    assert made.orders == ()
    assert "faulty" in made.decisions[0].reasons[0]


_queues = st.lists(
    st.builds(
        lambda vo, ces, wide, jobs: QueuedWork(asks(vo=vo, grid_ces=ces, tags=processor_tags(wide)), jobs),
        st.sampled_from(["v", "w"]),
        st.lists(st.sampled_from(["ce0", "ce1", "ce2"]), max_size=2).map(tuple),
        st.sampled_from([1, 1, 1, 2]),
        st.integers(0, 30),
    ),
    max_size=6,
)


_ads = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 4), st.integers(0, 5), st.integers(0, 6)), max_size=3
)


_pilots = st.lists(
    st.builds(
        PilotSupply,
        site=st.just("A"),
        ce=st.sampled_from(["ce0", "ce1", "ce2"]),
        vo=st.sampled_from(["v", "w"]),
        submitted=st.integers(0, 4),
        waiting=st.integers(0, 4),
        running=st.integers(0, 4),
        idle_slots=st.integers(0, 4),
    ),
    max_size=4,
)


@settings(max_examples=300, deadline=None)
@given(_queues, _ads, _pilots, st.integers(0, 40))
def test_never_more_than_work_room_and_cap(queues, shapes, pilots, cap):
    ads = [
        element(f"ce{n}", slots=slots, slots_per_pilot=per, cores_per_pilot=2, max_pilots=most, max_waiting_pilots=way)
        for n, (slots, per, most, way) in enumerate(shapes)
    ]  # fmt: skip
    made = plan(queues, ads, pilots, PilotCaps(orders=cap))
    ordered = sum(order.count for order in made.orders)
    assert ordered <= cap
    assert ordered == sum(decision.ordered for decision in made.decisions)
    assert [decision.ce for decision in made.decisions] == [ad.ce for ad in ads]
    assert all(decision.reasons for decision in made.decisions)
    for ad in ads:
        mine = [p for p in pilots if p.ce == ad.ce]
        new = counts(made)[ad.ce]
        if new:
            assert new + sum(p.submitted + p.waiting + p.running for p in mine) <= ad.pilot_limit
            if ad.max_waiting_pilots:
                assert new + sum(p.submitted + p.waiting for p in mine) <= ad.max_waiting_pilots
    for vo in "vw":
        jobs = sum(q.jobs for q in queues if q.requirements.vo == vo)
        assert sum(order.count for order in made.orders if order.vo == vo) <= jobs


def offering(**fields: Any) -> Resource:
    return replace(element().pilot_resource(vo="v"), **fields)


GPU = asks(requirements="other.gpunumber >= 1")


WITH_GPUS, WITH_SSDS = PilotClass(asked=("GPUs",)), PilotClass(asked=("SSDs",))


def hosts(requirements: Requirements, _: ComputingElement) -> PilotClass | None:
    return WITH_GPUS if requirements == GPU else None


@pytest.mark.parametrize(
    ("wanted", "resource"),
    [
        (asks(min_ram_mb=4_000), offering(memory_mb=3_999)),
        (asks(cpu_segment=1_000), offering(cpu_time=500)),
        (asks(tags=processor_tags(2)), offering(processors=1, memory_mb=8_000)),
        (GPU, offering(node=(("gpunumber", 0),))),
    ],
)
def test_an_idle_pilot_is_no_place_for_work_that_it_could_not_take(wanted, resource):
    """Though one like it, just sent, could."""
    ads = [with_gpus(memory_mb=8_000, slots_per_pilot=2, cores_per_pilot=2, max_pilots=5)]
    idle = under_way(running=2, idle_slots=2, resource=resource)
    plain = plan([QueuedWork(asks(), 2)], ads, [idle])
    assert plain.orders == (), "for others it is"
    assert counts(plan([QueuedWork(wanted, 2)], ads, [idle])) == {"ce0": 2 if wanted.tags else 1}
    told = plan([QueuedWork(wanted, 2), QueuedWork(asks(), 2)], ads, [idle])
    assert sum(share.taken for share in told.decisions[0].shares) == 2


def test_a_pilot_on_its_way_serves_work_of_the_hosts_that_it_asked_for():
    both = [QueuedWork(GPU, 1), QueuedWork(asks(), 1)]
    plain = plan(both, [with_gpus()], [under_way(waiting=1)], hosts=hosts)
    assert [(order.count, order.hosts) for order in plain.orders] == [(1, WITH_GPUS)]
    assert (
        plan(
            both,
            [with_gpus()],
            [under_way(waiting=1), under_way(waiting=1, asks=WITH_GPUS.name)],
            hosts=hosts,
        ).orders
        == ()
    )
    picky = plan(
        [QueuedWork(asks(), 1)], [with_gpus()], [under_way(waiting=1, asks=WITH_GPUS.name)], hosts=hosts
    )
    assert picky.orders == (), "such hosts do for any"
    other = plan(
        [QueuedWork(GPU, 1)], [with_gpus()], [under_way(waiting=1, asks=WITH_SSDS.name)], hosts=hosts
    )
    assert [order.hosts for order in other.orders] == [WITH_GPUS]


def test_pilots_are_ordered_by_the_hosts_that_they_ask_for_and_spare_places_are_those_hosts():
    ads = [with_gpus(slots=80, slots_per_pilot=4)]
    made = plan([QueuedWork(GPU, 6), QueuedWork(asks(), 9)], ads, hosts=hosts)
    ordered = {order.hosts: order.count for order in made.orders}
    assert sum(ordered.values()) == 4
    assert ordered[WITH_GPUS] >= 2
    assert 4 * ordered[WITH_GPUS] >= 6


def test_short_work_takes_the_pilots_that_end_soon_and_long_work_the_others():
    short, long = asks(cpu_segment=500), asks(cpu_segment=1_000)
    idle = [
        under_way(running=2, idle_slots=2),
        under_way(running=2, idle_slots=2, resource=offering(cpu_time=500)),
    ]
    assert plan([QueuedWork(short, 2), QueuedWork(long, 2)], [with_gpus()], idle).orders == ()
    assert counts(plan([QueuedWork(short, 2), QueuedWork(long, 3)], [with_gpus()], idle)) == {"ce0": 1}


def test_a_pilot_on_its_way_offers_what_its_element_said_when_it_was_sent():
    small = under_way(waiting=3, resource=offering(memory_mb=1_000))
    now = [with_gpus(memory_mb=8_000)]
    assert counts(plan([QueuedWork(asks(min_ram_mb=4_000), 3)], now, [small])) == {"ce0": 3}
    assert plan([QueuedWork(asks(min_ram_mb=1_000), 3)], now, [small]).orders == ()


@pytest.mark.parametrize("code", ["BACKOFF", "QUARANTINE", "BANNED", "DRAINING"])
def test_an_avoided_element_gets_no_pilots_and_the_next_gets_them(code):
    shut = {CeId("A", "ce0"): Avoidance(code, "it eats jobs")}
    made = plan(
        [QueuedWork(asks(), 4)], elements(2), [under_way("ce0", running=3, idle_slots=3)], avoided=shut
    )
    assert counts(made) == {"ce0": 0, "ce1": 4}
    assert (made.decisions[0].shares[0].held, made.decisions[0].shares[0].why) == (code, "it eats jobs")


@pytest.mark.parametrize(
    "coming", [{"submitted": 20}, {"waiting": 15, "submitted": 5}, {"running": 20, "idle_slots": 20}]
)
def test_pilots_of_an_element_that_is_only_full_count_for_its_work(coming: dict[str, int]):
    """Else the other elements would get pilots for the same jobs again."""
    full = {CeId("A", "ce0"): Avoidance("LIMIT", "its ad lets no more pilots come", serves=True)}
    there = [under_way("ce0", **coming), under_way("ce1", waiting=10)]
    made = plan([QueuedWork(asks(), 30)], elements(3), there, avoided=full)
    assert counts(made) == {"ce0": 0, "ce1": 0, "ce2": 0}
    assert [each.shares[0].taken for each in made.decisions[:2]] == [20, 10]
    more = plan([QueuedWork(asks(), 33)], elements(3), there, avoided=full)
    assert (more.decisions[0].ordered, sum(counts(more).values())) == (0, 3)


def test_limits_hold_for_the_pilots_of_an_element_that_is_only_full():
    full = {CeId("A", "ce0"): Avoidance("LIMIT", "its ad lets no more pilots come", serves=True)}
    there, leeway = [under_way("ce0", waiting=20)], limited(of_owner("o", 5))
    made = plan([QueuedWork(asks(owner="o"), 30)], elements(1), there, avoided=full, leeway=leeway)
    assert made.decisions[0].shares[0].taken == 5


def canary_of(ce: str) -> QueuedWork:
    return QueuedWork(asks(owner=CANARY, sites=("A",), grid_ces=(ce,)), 1)


def test_an_avoided_element_that_is_tried_gets_one_pilot_for_its_canary():
    shut = {CeId("A", "ce0"): Avoidance("QUARANTINE", "it eats jobs", canaries=True)}
    made = plan([QueuedWork(asks(), 40), canary_of("ce0")], elements(1), avoided=shut)
    assert counts(made) == {"ce0": 1}
    shut = {CeId("A", "ce0"): Avoidance("QUARANTINE", "it eats jobs")}
    assert counts(plan([QueuedWork(asks(), 40), canary_of("ce0")], elements(1), avoided=shut)) == {"ce0": 0}


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 30)), max_size=5),
    st.lists(
        st.tuples(st.sampled_from("abc*"), st.integers(0, 20)), max_size=3, unique_by=lambda each: each[0]
    ),
    st.integers(1, 4),
    st.sets(st.integers(0, 3)),
)
@settings(max_examples=150, deadline=None)
def test_never_more_than_the_limits_let_start_nor_than_demand_and_nothing_where_it_is_avoided(
    queued, limits, number, shut
):
    """A property: single-slot pilots never exceed the jobs that may start, nor the room, nor go where nothing is to go."""
    queues = [QueuedWork(asks(owner=owner), jobs) for owner, jobs in queued]
    said = dict(limits)
    avoided = {CeId("A", f"ce{n}"): Avoidance("BANNED", "") for n in shut}
    leeway = limited(*(of_owner(value, most) for value, most in limits))
    made = plan(queues, elements(number, slots=7), leeway=leeway, avoided=avoided)
    waiting = {owner: sum(jobs for each, jobs in queued if each == owner) for owner, _ in queued}
    bounds = {owner: [said[value] for value in (owner, "*") if value in said] for owner in waiting}
    let = sum(min([jobs, *bounds[owner]]) for owner, jobs in waiting.items())
    open_ = sum(f"ce{n}" not in {ce for _, ce in avoided} for n in range(number))
    assert sum(order.count for order in made.orders) == min(let, 7 * open_)
    assert all(not each.ordered for each in made.decisions if (each.site, each.ce) in avoided)


@pytest.mark.parametrize(
    ("asked", "offered", "clause"),
    [
        ({"grid_middlewares": ("ARC",)}, {"dispatcher": "arc"}, ""),
        ({"grid_middlewares": ("CREAM", "Any")}, {"dispatcher": "arc"}, ""),
        ({"grid_middlewares": ("CREAM",)}, {"dispatcher": "arc"}, "grid middleware"),
        ({"grid_middlewares": ("cream",)}, {"dispatcher": "arc", "grid_middleware": "CREAM"}, ""),
        ({"submit_pools": ("Tier1",)}, {"submit_pools": ("tier1",)}, ""),
        ({"submit_pools": ("Tier1",)}, {"submit_pools": ("tier2",)}, "submit pool"),
        ({"sites": ("a",)}, {}, ""),
        ({"min_disk_mb": 2_000}, {"disk_mb": 1_000}, "disk"),
        ({"min_disk_mb": 2_000}, {}, ""),
        ({"tags": ("WholeNode", "MultiProcessor")}, {"cores_per_pilot": 8}, "tags"),
        ({"tags": ("WholeNode", "MultiProcessor")}, {"cores_per_pilot": 8, "tags": ("wholenode",)}, ""),
    ],
)
def test_pilots_go_where_the_work_may_go(asked: dict[str, Any], offered: dict[str, Any], clause: str):
    found = reach(asks(**asked), element(**offered))
    assert (found.clause if found else "") == clause
    ordered = plan([QueuedWork(asks(**asked), 3)], [element(**offered)]).orders
    assert bool(ordered) is not bool(clause)


def test_each_job_that_wants_a_whole_node_has_a_pilot_of_its_own():
    there = [element(slots=64, slots_per_pilot=8, cores_per_pilot=8, tags=("WholeNode",))]
    assert counts(plan([QueuedWork(asks(tags=("WholeNode", "MultiProcessor")), 3)], there)) == {"ce0": 3}
    assert counts(plan([QueuedWork(asks(), 3)], there)) == {"ce0": 1}
