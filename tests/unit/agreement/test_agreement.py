"""What becomes of an agreement as time passes: nothing lives past its time."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.agreement.offers import NOW, at, terms
from wms.agreement.agreement import Agreement, overdue
from wms.agreement.reasons import AgreementReason
from wms.agreement.state import ALIVE, AgreementState, agreement_after

S, R = AgreementState, AgreementReason
GRACE = timedelta(seconds=300)


def agreement(state: AgreementState = S.TEMPORARY, **changed: Any) -> Agreement:
    held: dict[str, Any] = {
        "state": state,
        "start_at": None if state is S.REQUESTED else at(100),
        "ends_at": None if state is S.REQUESTED else at(700),
        "reservation": "",
        "is_held": False,
        "expires_at": at(60),
        "used_at": None,
        "tries": 0,
        "code": "",
        "text": "",
        "created_at": NOW,
        "changed_at": NOW,
    }
    return Agreement(**(msgspec.structs.asdict(terms()) | held | changed))


@pytest.mark.parametrize(
    ("state", "seconds", "changed", "code"),
    [
        (S.REQUESTED, 60, {}, R.NOT_DECIDED),
        (S.TEMPORARY, 60, {}, R.NOT_CONFIRMED),
        (S.CONFIRMED, 400, {}, R.NOT_USED),
        (S.CONFIRMED, 700, {"used_at": at(120)}, R.TIME_OVER),
    ],
)
def test_each_state_is_over_in_time_and_not_before(
    state: AgreementState, seconds: float, changed: dict[str, Any], code: AgreementReason
) -> None:
    one = agreement(state, **changed)
    assert overdue(one, at(seconds - 0.001), GRACE, job_is_over=False) is None
    mark = overdue(one, at(seconds), GRACE, job_is_over=False)
    assert mark is not None
    assert mark.code is code
    assert agreement_after(state, mark.event) not in ALIVE | {None}


def test_what_its_job_left_is_released_at_once() -> None:
    mark = overdue(agreement(S.CONFIRMED), at(1), GRACE, job_is_over=True)
    assert mark is not None
    assert mark.code is R.JOB_OVER


@given(state=st.sampled_from(S), seconds=st.floats(0, 1e6), used=st.booleans(), job_is_over=st.booleans())
def test_nothing_lives_past_its_time_and_what_is_over_does_not_change(
    *, state: AgreementState, seconds: float, used: bool, job_is_over: bool
) -> None:
    one = agreement(state, used_at=at(110) if used else None)
    mark = overdue(one, at(seconds), GRACE, job_is_over=job_is_over)
    if state not in ALIVE:
        assert mark is None
    elif seconds >= 700:
        assert mark is not None
    if mark is not None:
        assert agreement_after(state, mark.event) not in ALIVE | {None}


def test_only_an_unconfirmed_flexible_one_may_be_moved_and_only_within_its_window() -> None:
    window: dict[str, Any] = {"flexible": True, "earliest_start": at(50), "latest_start": at(500)}
    day = timedelta(days=1)
    assert agreement(**window).booking(NOW, day).window == (at(50), at(500))
    assert agreement(**window).booking(at(70), day).window == (at(70), at(500))
    assert agreement(S.CONFIRMED, **window).booking(NOW, day).window is None
    assert agreement().booking(NOW, day).window is None
