"""Counts of what ended lately and of what waits."""

from wms.auth.policy import NOTHING, Scope
from wms.db import overview
from wms.db.database import Transaction


async def test_there_is_nothing_in_an_empty_system(tx: Transaction) -> None:
    assert await overview.outcomes(tx, 3_600.0) == []
    assert await overview.outcomes_of_owners(tx, 3_600.0) == []
    for scope in (Scope(reach="all"), NOTHING):
        assert await overview.waits(tx, scope, watched=True) == []
        assert await overview.waits(tx, scope, watched=False) == []
    assert await overview.pilot_ends(tx, None, 3_600.0) == []
