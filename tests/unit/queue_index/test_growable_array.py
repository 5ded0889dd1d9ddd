"""Arrays that grow: value by value or many at once, the same as a list would hold."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wms.queue_index.growable_array import GrowableArray

STEPS = st.lists(st.integers(-(2**31), 2**31 - 1) | st.lists(st.integers(-9, 9), max_size=200), max_size=60)


@given(STEPS)
def test_it_holds_what_a_list_would(steps: list[int | list[int]]) -> None:
    array, expected = GrowableArray(np.int32), list[int]()
    for step in steps:
        if isinstance(step, int):
            array.append(step)
            expected.append(step)
        else:
            array.extend(step)
            expected.extend(step)
        assert array.length == len(expected)
    assert array.values.tolist() == expected


def test_what_is_written_by_cell_is_seen_in_the_whole_and_the_other_way_round() -> None:
    array = GrowableArray(np.float64)
    array.extend(np.arange(100))
    array.items[7] = -1.0
    array.values[8] = -2.0
    assert (array.values[7], array.items[8]) == (-1.0, -2.0)


def test_cells_are_those_of_the_array_after_it_has_grown() -> None:
    array = GrowableArray(np.int64)
    for n in range(1_000):
        array.append(n)
        array.items[n] += 1
    assert array.values.tolist() == list(range(1, 1_001))
