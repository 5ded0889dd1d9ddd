"""Which ranges of bytes are served, ignored and refused."""

import pytest

from services.gateway.byte_range import PARTIAL, Span, span_of
from services.gateway.problem import OutOfRange, headers_of, problem_of
from tests.unit.gateway.requested import a_request

MARK = '"d1"'


@pytest.mark.parametrize(
    ("said", "first", "end"),
    [
        ("bytes=0-", 0, 10),
        ("bytes=0-0", 0, 1),
        ("bytes=9-", 9, 10),
        ("bytes=5-400", 5, 10),
        ("bytes=-1", 9, 10),
        ("bytes=-99", 0, 10),
    ],
)
def test_a_range_within_the_object_is_served(said: str, first: int, end: int) -> None:
    span = span_of(a_request(range=said), 10, MARK)
    assert span == Span(first, end, PARTIAL)
    assert span.headers(10)["Content-Range"] == f"bytes {first}-{end - 1}/10"
    assert span.headers(10)["Content-Length"] == str(end - first)


@pytest.mark.parametrize(
    "said", ["", "bytes=", "bytes=a-b", "bytes=4-2", "lines=0-1", "bytes=0-1,3-4", "bytes=" + "9" * 30 + "-"]
)
def test_for_what_is_no_range_all_is_served(said: str) -> None:
    span = span_of(a_request(range=said, host="h"), 10, MARK)
    assert span == Span(0, 10)
    assert "Content-Range" not in span.headers(10)


def test_a_range_of_another_version_is_ignored() -> None:
    assert span_of(a_request(range="bytes=5-", if_range='"d2"'), 10, MARK) == Span(0, 10)
    assert span_of(a_request(range="bytes=5-", if_range=MARK), 10, MARK) == Span(5, 10, PARTIAL)


@pytest.mark.parametrize("said", ["bytes=10-", "bytes=10-20", "bytes=-0"])
def test_a_range_after_the_end_is_refused_with_the_size(said: str) -> None:
    with pytest.raises(OutOfRange) as caught:
        span_of(a_request(range=said), 10, MARK)
    problem = problem_of(caught.value)
    assert (problem.status, problem.code) == (416, "RANGE_NOT_SATISFIABLE")
    assert headers_of(caught.value, 416) == {"Content-Range": "bytes */10"}
