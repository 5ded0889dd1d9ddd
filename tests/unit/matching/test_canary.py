"""Canaries are told by their owner alone, and what is closed to all work is open to them."""

from hypothesis import given

from tests.unit.matching.strategies import asks, requirements
from wms.matching.canary import GROUP, OWNER, is_canary
from wms.matching.closed_pairs import WORK, has
from wms.matching.grouping import Requirements


def test_the_owner_alone_makes_a_canary() -> None:
    assert is_canary(asks(owner=OWNER))
    assert not is_canary(asks(owner="canary", owner_group=GROUP, vo=OWNER))
    assert not is_canary(asks(owner=OWNER.upper())), "owners are compared as they are written"


@given(requirements())
def test_a_closure_of_all_work_keeps_back_everything_but_canaries(wanted: Requirements) -> None:
    assert has(wanted, WORK)
    assert not has(asks(owner=OWNER, sites=wanted.sites, tags=wanted.tags), WORK)


def test_a_closure_of_every_job_keeps_back_canaries_too() -> None:
    assert has(asks(owner=OWNER), ("any", ""))
