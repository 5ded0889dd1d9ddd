"""The size of batches, by how long the last ones took."""

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bus.messages import message
from wms.bus.batch_size import LEAST_BYTES, BatchSize


@given(st.lists(st.integers(0, 300_000), max_size=60), st.integers(1, 20), st.integers(LEAST_BYTES, 500_000))
def test_the_parts_are_all_records_in_order_and_within_the_size(
    sizes: list[int], most: int, most_bytes: int
) -> None:
    records = [message("ann", size=size).record for size in sizes]
    parts = list(BatchSize(most, most_bytes).parts(records))
    assert [each for part in parts for each in part] == records
    for part in parts:
        assert len(part) == 1 or (len(part) <= most and sum(each.size for each in part) <= most_bytes)


def test_a_batch_that_took_long_makes_the_next_ones_smaller_until_they_are_quick() -> None:
    size = BatchSize(256, 4_000_000)
    size.took(5.0, 256, 3_000_000)
    assert (size.count, size.bytes) == (25, 300_000)
    size.took(5.0, 25, 300_000)
    assert (size.count, size.bytes) == (2, LEAST_BYTES)
    for _ in range(20):
        size.took(0.01, size.count, size.bytes)
    assert (size.count, size.bytes) == (256, 4_000_000)
