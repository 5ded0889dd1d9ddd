"""The description on the wire, and its digest."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.jobdesc.descriptions import of
from wms.jobdesc import (
    JobDescription,
    digest,
    read_json,
    validate,
)
from wms.jobdesc.description import CPU_TIME, revised


@settings(deadline=None)
@given(st.builds(of, arguments=st.lists(st.text(), max_size=3).map(tuple), priority=st.integers(0, 10)))
def test_the_description_survives_the_wire(description: JobDescription) -> None:
    if not validate(description):
        again = msgspec.json.decode(msgspec.json.encode(description), type=JobDescription)
        assert again == description
        assert digest(again) == digest(description)


def test_the_digest_does_not_depend_on_the_order_of_keys_but_on_all_else() -> None:
    assert digest(of(environment={"A": "1", "B": "2"})) == digest(of(environment={"B": "2", "A": "1"}))
    assert (
        len({digest(of()), digest(of(cpu_time=1)), digest(of(arguments=("a",))), digest(of(tags=("a",)))})
        == 4
    )


DAY = 86_400


def test_without_a_cpu_time_it_is_the_wall_time_of_all_processors() -> None:
    assert of(wall_time=3 * DAY).cpu_time == 3 * DAY
    assert of(wall_time=DAY, processors=8).cpu_time == 8 * DAY
    assert of(wall_time=DAY, min_processors=2, max_processors=4).cpu_time == 4 * DAY
    assert of(wall_time=60, processors=8).cpu_time == of().cpu_time == CPU_TIME
    (read,) = read_json(b'{"executable": "a", "wall_time": 259200, "processors": 16}')
    assert read.cpu_time == 48 * DAY
    assert not validate(of(wall_time=366 * DAY, processors=1024))


def test_a_stated_cpu_time_stays() -> None:
    assert of(wall_time=3 * DAY, cpu_time=60).cpu_time == 60
    assert revised(of(wall_time=3 * DAY, cpu_time=60), {"processors": 8}).cpu_time == 60


def test_a_cpu_time_that_followed_follows_the_changes() -> None:
    assert revised(of(wall_time=3 * DAY), {"processors": 8}).cpu_time == 24 * DAY
    assert revised(of(wall_time=3 * DAY), {"wall_time": 60}).cpu_time == CPU_TIME
    assert revised(of(), {"wall_time": 2 * DAY}).cpu_time == 2 * DAY
    assert revised(of(wall_time=3 * DAY), {"cpu_time": 60, "processors": 8}).cpu_time == 60


def test_what_is_no_number_is_left_to_the_rules() -> None:
    assert validate(of(wall_time="3d"))
