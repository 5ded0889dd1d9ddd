"""Arrays of jobs: what each job is, and that there are no others."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.jobdesc.descriptions import of
from wms.jobdesc import (
    argv,
    expand,
    jobs_in,
    validate,
)
from wms.jobdesc.conflicts import TEXT_LIMIT


def test_an_array_is_expanded() -> None:
    array = of(
        arguments=("{n}", "x{n}y{n}", "{{n}}", "{other}", "{ n }", "awk {print $1}"),
        environment={"INDEX": "{n}"},
        name="job {n}",
        output_sandbox=("out{n}.txt",),
        array=3,
    )
    assert validate(array) == []
    assert jobs_in(array) == 3
    last = expand(array, 2)
    assert last.arguments == ("2", "x2y2", "{n}", "{other}", "{ n }", "awk {print $1}")
    assert (last.environment, last.name, last.output_sandbox) == ({"INDEX": "2"}, "job 2", ("out2.txt",))
    assert (last.array, jobs_in(last), validate(last)) == (None, 1, [])
    assert argv(array, 1)[:3] == ("/bin/true", "1", "x1y1")


def test_lists_of_parameters_go_together() -> None:
    array = of(
        arguments=("{run}", "{energy}", "{n}"), parameters={"run": ("a", "b"), "energy": ("7", "{run}")}
    )
    assert [expand(array, i).arguments for i in range(2)] == [("a", "7", "0"), ("b", "{run}", "1")]


@pytest.mark.parametrize("index", [-1, 3])
def test_there_is_no_job_beyond_the_array(index: int) -> None:
    with pytest.raises(IndexError):
        expand(of(array=3), index)


def test_what_is_no_array_is_left_alone() -> None:
    plain = of(arguments=("{n}", "{{n}}"))
    assert expand(plain, 0) is plain


@settings(deadline=None)
@given(
    st.lists(st.text("{}n. p"), min_size=1, max_size=5),
    st.lists(st.text("abc{}np", max_size=5), min_size=1, max_size=5),
)
def test_an_accepted_array_gives_bounded_jobs(arguments: list[str], values: list[str]) -> None:
    array = of(arguments=tuple(arguments), parameters={"p": tuple(values)})
    assert validate(array) == []
    for i in range(jobs_in(array)):
        assert sum(map(len, expand(array, i).arguments)) <= TEXT_LIMIT
