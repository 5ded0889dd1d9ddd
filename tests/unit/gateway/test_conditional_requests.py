"""Marks of answers, and answers that are not sent again."""

import pytest

from services.gateway import conditional_requests
from tests.unit.gateway.requested import a_request
from wms.messages import replies


def counts(query_id: str, client: str, **states: int) -> replies.JobCounts:
    return replies.JobCounts(query_id=query_id, client=client, counts=states)


def test_the_mark_is_of_the_content_alone() -> None:
    one = conditional_requests.mark_of(counts("a", "gateway.1", Done=3))
    assert conditional_requests.mark_of(counts("b", "gateway.2", Done=3)) == one
    assert conditional_requests.mark_of(counts("a", "gateway.1", Done=4)) != one
    assert conditional_requests.mark_of([1]) != conditional_requests.mark_of([2])


def test_who_has_the_answer_is_told_so_without_it() -> None:
    first = conditional_requests.answer_to(a_request(), [1, 2])
    assert (first.status_code, bytes(first.body)) == (200, b"[1,2]")
    mark = first.headers["ETag"]
    for named in (mark, mark.removeprefix("W/"), f'"x", {mark}', "*"):
        again = conditional_requests.answer_to(a_request(if_none_match=named), [1, 2])
        assert (again.status_code, bytes(again.body), again.headers["ETag"]) == (304, b"", mark)


@pytest.mark.parametrize("named", ["", '"x"', "W/", ",", '"'])
def test_who_has_another_answer_gets_this_one(named: str) -> None:
    assert conditional_requests.answer_to(a_request(if_none_match=named), [1, 2]).status_code == 200
