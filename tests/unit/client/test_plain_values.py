"""What programs write in a description, and what is submitted."""

from pathlib import Path
from typing import Any

import pytest

from wms.client.plain_values import plain
from wms.jobdesc import validate
from wms.jobdesc.description import JobDescription


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"parameters": {"x": range(3), "y": [0.5, 1, "a"]}}, {"x": ("0", "1", "2"), "y": ("0.5", "1", "a")}),
        ({"parameters": {"x": (str(n) for n in range(2))}}, {"x": ("0", "1")}),
        ({"arguments": ["-n", 5, Path("/a")]}, ("-n", "5", "/a")),
        ({"environment": {"N": 3}}, {"N": "3"}),
        ({"memory_mb": "2G"}, 2_048),
        ({"stdout_limit": "4K"}, 4_096),
        ({"executable": Path("/bin/true")}, "/bin/true"),
    ],
)
def test_values_are_those_of_the_command_line(given: dict[str, Any], told: object) -> None:
    found = plain(JobDescription(**{"executable": "true"} | given))
    assert getattr(found, next(iter(given))) == told
    assert validate(found) == []


def test_the_cpu_time_follows_a_wall_time_with_a_unit() -> None:
    found = plain(JobDescription(executable="true", wall_time="2d", processors=4))  # type: ignore[arg-type]
    assert (found.wall_time, found.cpu_time) == (172_800, 4 * 172_800)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("memory_mb", "much"),
        ("parameters", {"x": "abc"}),
        ("parameters", {"x": [True]}),
        ("arguments", "a b"),
    ],
)
def test_what_means_nothing_stays_for_validation_to_name(field: str, value: Any) -> None:
    given = JobDescription(**{"executable": "true", field: value})
    assert [each.place.partition(".")[0].partition("[")[0] for each in validate(plain(given))] == [field]


def test_what_is_plain_is_not_made_anew() -> None:
    given = JobDescription(executable="true", arguments=("a",), parameters={"x": ("1",) * 10}, memory_mb=5)
    assert plain(given) is given
