"""Which ranges of bytes are served, ignored and refused."""

import pytest

from services.gateway.byte_range import check_range
from services.gateway.problem import OutOfRange, headers_of, problem_of
from tests.unit.gateway.requested import a_request


@pytest.mark.parametrize(
    "said", ["bytes=0-", "bytes=0-0", "bytes=9-", "bytes=5-400", "bytes=-1", "bytes=-99"]
)
def test_a_range_within_the_object_is_left_to_be_served(said: str) -> None:
    request = a_request(range=said)
    check_range(request, 10)
    assert ("range", said) in [(name, value) for name, value in request.headers.items()]


@pytest.mark.parametrize(
    "said", ["", "bytes=", "bytes=a-b", "bytes=4-2", "lines=0-1", "bytes=0-1,3-4", "bytes=" + "9" * 30 + "-"]
)
def test_what_is_no_range_is_ignored(said: str) -> None:
    request = a_request(range=said, host="h")
    check_range(request, 10)
    assert [name for name, _ in request.scope["headers"]] == [b"host"]


@pytest.mark.parametrize("said", ["bytes=10-", "bytes=10-20", "bytes=-0"])
def test_a_range_after_the_end_is_refused_with_the_size(said: str) -> None:
    with pytest.raises(OutOfRange) as caught:
        check_range(a_request(range=said), 10)
    problem = problem_of(caught.value)
    assert (problem.status, problem.code) == (416, "RANGE_NOT_SATISFIABLE")
    assert headers_of(caught.value, 416) == {"Content-Range": "bytes */10"}
