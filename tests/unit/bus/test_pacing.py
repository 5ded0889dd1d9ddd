"""How often a broker is asked that wakes nobody."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from wms.bus.pacing import (
    LONGEST_SECONDS,
    SHARE_OF_SILENCE,
    SHORTEST_SECONDS,
    Pacing,
    fetch_wait_ms,
    rest_seconds,
)

SILENCES = st.floats(0, 1e6)


@given(SILENCES)
def test_a_message_is_late_by_a_share_of_the_silence_and_no_more_than_the_longest_rest(silent: float) -> None:
    rest = rest_seconds(silent)

    assert SHORTEST_SECONDS <= rest <= LONGEST_SECONDS
    assert rest <= max(SHORTEST_SECONDS, silent * SHARE_OF_SILENCE)


@given(SILENCES, SILENCES)
def test_the_longer_the_silence_the_longer_the_rest(one: float, other: float) -> None:
    shorter, longer = sorted((one, other))

    assert rest_seconds(shorter) <= rest_seconds(longer)


def test_what_is_busy_is_asked_at_once_and_what_is_idle_seldom() -> None:
    assert rest_seconds(0) == SHORTEST_SECONDS
    assert rest_seconds(60) == LONGEST_SECONDS


def test_who_is_behind_allows_more_time() -> None:
    assert fetch_wait_ms(behind=True) > 100 * fetch_wait_ms(behind=False) > 0


async def test_a_rest_ends_when_something_is_expected() -> None:
    now = 0.0
    pacing = Pacing(clock=lambda: now)
    now = 3_600.0
    resting = asyncio.create_task(pacing.rest())
    await asyncio.sleep(0)
    pacing.hurry()
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert resting.done()
    assert pacing.next_rest_seconds() == SHORTEST_SECONDS
