"""What jobs could ask for instead, as replies have it."""

from services.job_manager.queries.relaxations import SITES_SHOWN, relaxations
from tests.unit.matching.strategies import asks
from tests.unit.why.elements import at
from wms.messages import replies
from wms.why.verdict import ElementSupply, verdicts

SEGMENTS = (500, 5_000)


def found(places: list[ElementSupply], **wanted: object) -> list[replies.Relaxation]:
    asked = asks(**wanted)
    return list(relaxations(asked, verdicts(asked, places), SEGMENTS))


def test_a_change_says_what_it_would_open() -> None:
    places = [at(ce="x", memory_mb=2_000, running=1, free_slots=3), at(ce="y", site="B", memory_mb=2_000)]
    (one,) = found(places, min_ram_mb=4_000)
    assert one.clauses == ("memory",)
    assert (one.slots, one.free_slots, one.elements, one.sites, one.sites_total) == (20, 3, 2, ("A", "B"), 2)
    assert one.changes, "it names the field and its value"


def test_of_many_sites_some_are_named_and_all_counted() -> None:
    places = [at(site=f"S{n:02}", memory_mb=2_000) for n in range(SITES_SHOWN + 3)]
    (one,) = found(places, min_ram_mb=4_000)
    assert one.sites == tuple(f"S{n:02}" for n in range(SITES_SHOWN))
    assert (one.sites_total, one.elements) == (SITES_SHOWN + 3, SITES_SHOWN + 3)


def test_elements_of_one_site_are_one_site() -> None:
    (one,) = found([at(ce=f"c{n}", memory_mb=2_000) for n in range(4)], min_ram_mb=4_000)
    assert (one.sites, one.elements) == (("A",), 4)


def test_what_runs_already_needs_no_change() -> None:
    assert found([at(memory_mb=8_000)], min_ram_mb=4_000) == []


def test_the_widest_change_comes_first() -> None:
    places = [
        at(ce="x", memory_mb=2_000, slots=5),
        at(ce="y", memory_mb=8_000, slots=50, vos=()),
        at(ce="z", memory_mb=8_000),
    ]
    places = [places[0], at(ce="y", memory_mb=8_000, slots=50, required_tags=("gpu",), tags=("gpu",))]
    slots = [each.slots for each in found(places, min_ram_mb=4_000)]
    assert slots == sorted(slots, reverse=True)
    assert len(slots) == 2
