"""A step is tried again while its servers are away, and not for ever."""

import pytest

from wms.errors import Rejected, Unavailable
from wms.runtime.patience import patiently


async def test_a_step_is_tried_again_until_it_succeeds() -> None:
    outcomes: list[Exception] = [ConnectionError("refused"), Unavailable("no broker")]

    async def connect() -> str:
        if outcomes:
            raise outcomes.pop(0)
        return "connected"

    assert await patiently(connect) == "connected"


async def test_it_is_given_up_in_time_and_with_its_reason() -> None:
    async def connect() -> None:
        raise ConnectionError("refused")

    with pytest.raises(Unavailable, match="refused"):
        await patiently(connect, within=0.0)


async def test_what_is_wrong_for_good_is_not_tried_again() -> None:
    async def connect() -> None:
        raise Rejected("NOT_LET_IN", "no")

    with pytest.raises(Rejected):
        await patiently(connect)
