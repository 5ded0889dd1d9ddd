"""The Standard Workload Format: what is read, in which order, and what is refused by which line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.errors import Rejected
from wms.replay import swf

HEAD = [
    "; Version: 2.2",
    "; MaxPartitions: 3",
    "; Partition:  1 grid.ici.ro                ",
    "; Partition:  3 grid kiae / ru",
    "",
]


def line(number: int, submit: float, *, run: float = 5, part: int = 1, cpus: int = 1, asked: int = -1) -> str:
    return f"{number} {submit} -1 {run} {cpus} -1 -1 {asked} 1200 -1 -1 7 2 -1 -1 {part} -1 -1"


def test_what_a_line_says() -> None:
    trace = swf.read([*HEAD, "1 0 -1 83 2 -1 -1 4 1200 -1 -1 7 2 -1 -1 3 -1 -1"], 10)
    assert trace.partitions == {1: "grid.ici.ro", 3: "grid-kiae-ru"}
    assert trace.jobs == (
        swf.TraceJob(
            number=1,
            submit_time=0,
            run_time=83,
            processors=4,
            requested_time=1200,
            user=7,
            group=2,
            partition=3,
        ),
    )


def test_the_first_by_time_are_taken_whatever_their_order_in_the_file() -> None:
    lines = [line(1, 30), line(2, 10), "; a remark between", line(3, 20), line(4, 10)]
    assert [job.number for job in swf.read(lines, 3).jobs] == [2, 4, 3]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("1 2 3", "line 6 has 3 fields, not 18"),
        (line(1, 0) + " 5", "line 6 has 19 fields"),
        (line(1, 0).replace("1200", "ten"), "line 6 has in field 9 no number"),
        (line(1, 0).replace("1200", "nan"), "line 6 has in field 9 no number"),
        (line(1, 0).replace("1200", "1e99"), "line 6 has in field 9 no number"),
        (line(1, 0).replace("1200", "-2"), "line 6 has in field 9 no number"),
        (line(1, -1), r"line 6 has no time of submission \(field 2\)"),
        ("1" * 5_000, "line 6 is longer than 4096"),
        ("\x1b[2J" + line(1, 0), "line 6 has in field 1 no number"),
    ],
)
def test_what_is_wrong_is_named_by_its_line(wrong: str, said: str) -> None:
    with pytest.raises(Rejected, match=said) as refusal:
        swf.read([*HEAD, wrong, line(2, 3)], 10)
    assert str(refusal.value.message).isprintable()


def test_a_trace_without_jobs_is_none() -> None:
    with pytest.raises(Rejected, match="no job in the trace"):
        swf.read(HEAD, 10)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=200), max_size=10))
def test_any_text_is_read_or_refused(lines: list[str]) -> None:
    try:
        assert swf.read(lines, 5).jobs
    except Rejected as refusal:
        assert refusal.code == "BAD_TRACE"  # noqa: PT017 - either outcome is right
