"""Problem details."""

import pytest

from services.gateway.problem import STATUS, TITLES, TooMany, headers_of, problem_of, status_of
from wms.errors import Rejected, Unavailable


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("TOKEN_EXPIRED", 401),
        ("NOT_ALLOWED", 403),
        ("NO_SUCH_JOB", 404),
        ("ID_REUSED", 409),
        ("MESSAGE_TOO_LARGE", 413),
        ("DESCRIPTION_INVALID", 422),
        ("A_CODE_OF_TOMORROW", 422),
    ],
)
def test_a_code_has_a_status(code: str, status: int) -> None:
    assert status_of(code) == status


def test_each_status_has_a_title() -> None:
    assert {*STATUS.values(), 413, 422, 500, 503} <= TITLES.keys()


def test_a_refusal_keeps_its_places_and_its_remedy() -> None:
    problem = problem_of(Rejected("BAD", "it is wrong", "mend it", ("jobs[0].name: too long",)))
    assert (problem.code, problem.detail, problem.remedy) == ("BAD", "it is wrong", "mend it")
    assert problem.places == ("jobs[0].name: too long",)


def test_who_came_too_often_is_told_when_to_come_again() -> None:
    fault = TooMany("too many", 2.2)
    assert problem_of(fault).status == 429
    assert headers_of(fault, 429) == {"Retry-After": "3"}


def test_what_is_away_may_be_asked_again() -> None:
    problem = problem_of(Unavailable("no broker"))
    assert (problem.status, problem.code) == (503, "UNAVAILABLE")
    assert headers_of(Unavailable("no broker"), 503) == {"Retry-After": "2"}
