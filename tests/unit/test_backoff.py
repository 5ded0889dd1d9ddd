"""Backoff, errors and slugs: small, pure, and used everywhere."""

import random
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wms.backoff import delays


@settings(deadline=None)
@given(
    base=st.floats(0.001, 10),
    cap=st.floats(10, 1000),
    factor=st.floats(1, 10),
    seed=st.integers(0, 2**32),
)
def test_delays_lie_between_half_the_ceiling_and_the_ceiling(
    base: float, cap: float, factor: float, seed: int
) -> None:
    ceiling = base
    for delay in islice(delays(base, cap, factor, random.Random(seed).random), 40):
        assert ceiling / 2 <= delay <= ceiling
        ceiling = min(cap, ceiling * factor)


def test_a_backoff_that_could_spin_is_refused() -> None:
    for base, cap, factor in [(0, 1, 2), (2, 1, 2), (1, 2, 0.5), (-1, 1, 1)]:
        with pytest.raises(ValueError, match="backoff"):
            delays(base, cap, factor, lambda: 0.0)


def test_many_steps_do_not_overflow() -> None:
    assert max(islice(delays(1, 60, 10, lambda: 0.0), 5000)) == 60
