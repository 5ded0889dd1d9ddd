"""The tiers of reasons why a queue waits."""

from typing import Any

import pytest
from hypothesis import given, settings

from tests.unit.matching.strategies import asks, requirements
from tests.unit.why.elements import at, places
from wms.job.wait_reason_codes import WaitCode
from wms.matching.clauses import Mismatch
from wms.matching.grouping import Requirements
from wms.provisioning.demand import reach
from wms.site import folded
from wms.why.verdict import ElementSupply, verdicts
from wms.why.wait_reason_text import judge, standing


@pytest.mark.parametrize(
    ("wanted", "there", "code"),
    [
        (asks(sites=("A",), banned_sites=("A", "B")), [at()], WaitCode.NEVER_POSSIBLE),
        (asks(tags=("gpu",)), [at(), at(fresh=False)], WaitCode.NEVER_POSSIBLE),
        (asks(), [], WaitCode.IMPOSSIBLE_NOW),
        (asks(tags=("gpu",)), [at(), at(tags=("gpu",), fresh=False)], WaitCode.IMPOSSIBLE_NOW),
        (asks(), [at(coming=2)], WaitCode.NO_PILOT),
        (asks(), [at(), at(fresh=False, running=1, slots=3, free_slots=3)], WaitCode.NO_PILOT),
        (asks(tags=("gpu",)), [at(running=1, slots=3, free_slots=3), at(tags=("gpu",))], WaitCode.NO_PILOT),
        (asks(), [at(running=2, slots=4)], WaitCode.SLOTS_BUSY),
        (asks(), [at(running=2, slots=4, free_slots=1)], WaitCode.SOON),
    ],
)
def test_tiers(wanted: Requirements, there: list[ElementSupply], code: WaitCode) -> None:
    found = judge(standing(wanted, verdicts(wanted, there)))
    assert found.code is code
    assert found.text


def test_a_limit_holds_where_it_holds_everywhere() -> None:
    def enough(_: Requirements, at: Any) -> Mismatch | None:
        return Mismatch("running limit", "10 of 10 run at A") if at.site == "A" else None

    free = at(running=1, slots=2, free_slots=1)
    held = judge(standing(asks(), verdicts(asks(), [free], [enough])))
    assert held.code is WaitCode.HELD_BY_LIMIT
    assert "10 of 10 run at A" in held.text
    other = at(site="B", running=1, slots=2)
    assert judge(standing(asks(), verdicts(asks(), [free, other], [enough]))).code is WaitCode.SLOTS_BUSY


def test_a_queue_with_next_to_no_draws_is_behind_others() -> None:
    said = verdicts(asks(), [at(running=1, slots=9, free_slots=5)])
    assert judge(standing(asks(), said, chance=0.5)).code is WaitCode.SOON
    assert judge(standing(asks(), said, chance=0.1)).code is WaitCode.BEHIND_OTHERS
    assert judge(standing(asks(), said, chance=0.0)).code is WaitCode.BEHIND_OTHERS


@settings(deadline=None)
@given(requirements(), places())
def test_the_tier_is_true(wanted: Requirements, there: list[ElementSupply]) -> None:
    """Whatever there is: never and now are said exactly when the planner could send a pilot nowhere known or nowhere at all."""
    code = judge(standing(wanted, verdicts(wanted, there))).code
    now = any(each.fresh and reach(wanted, each.element) is None for each in there)
    ever = any(reach(wanted, each.element) is None for each in there)
    contradicts = bool(wanted.sites) and set(folded(wanted.sites)) <= set(folded(wanted.banned_sites))
    never = contradicts or (bool(there) and not ever)
    assert (code is WaitCode.NEVER_POSSIBLE) == never
    assert (code is WaitCode.IMPOSSIBLE_NOW) == (not never and not now)
