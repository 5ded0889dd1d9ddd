"""Sizes of batches, budgets and turns of owners: pure."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from wms.auth.principal import Principal
from wms.bus.batch_size import LEAST_BYTES, BatchSize
from wms.bus.budget import Budget
from wms.bus.delivery import Decoded, Delivery
from wms.bus.reader import Message
from wms.bus.turns import BURST_SECONDS, PATIENCE_SECONDS, Turns

_offsets = itertools.count()


def message(owner: str, *, partition: int = 0, size: int = 100) -> Decoded[str]:
    record = Message(partition, next(_offsets), None, b"x" * size, "")
    who = Principal(
        kind="user", owner=owner, group="g", vo="v", rights=frozenset(), pilot_id=None, site=None, ce=None,
        token_id="t", expires_at=4e9,
    )  # fmt: skip
    return Decoded(record, Delivery(who, "m"))


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


def test_a_budget_is_a_burst_and_then_a_rate() -> None:
    budget = Budget(rate=10, burst=100)
    assert budget.seconds_until("ann", 100, 0.0) == 0
    budget.spend("ann", 100, 0.0)
    assert budget.seconds_until("ann", 20, 0.0) == 2
    assert budget.seconds_until("ann", 20, 2.0) == 0
    assert budget.left("ben", 0.0) == 100
    assert budget.left("ann", 1_000.0) == 100


def test_who_is_over_the_budget_waits_aside_only_when_others_wait() -> None:
    turns = Turns()
    turns.spent([message("dear")], BURST_SECONDS + 1, 0.0)
    alone = [message("dear")]
    assert turns.split(alone, 0.0, 0.0) == (alone, [])
    assert turns.split(alone, 0.0, PATIENCE_SECONDS + 1) == ([], alone)
    dear, ann = message("dear"), message("ann")
    assert turns.split([dear, ann], 0.0, 0.0) == ([ann], [dear])
    assert turns.split([dear, ann], 60.0, 0.0) == ([dear, ann], [])


def test_what_follows_a_parked_message_of_the_same_owner_and_partition_waits_behind_it() -> None:
    turns = Turns()
    turns.parked([message("dear")])
    behind, elsewhere = message("dear"), message("dear", partition=1)
    assert turns.split([behind, elsewhere], 0.0, 0.0) == ([elsewhere], [behind])
    turns.took((0, "dear"), 1.0, 1, 0.0)
    assert turns.split([behind, elsewhere], 60.0, 0.0) == ([behind, elsewhere], [])


def test_the_owner_that_used_the_least_is_next_and_a_new_one_has_no_claim_on_the_past() -> None:
    turns = Turns()
    turns.parked([message("dear")] * 10)
    for _ in range(3):
        assert turns.next() == (0, "dear")
        turns.took((0, "dear"), 3.0, 1, 0.0)
    turns.parked([message("ann")] * 10)
    order = []
    for _ in range(8):
        whose = turns.next()
        assert whose is not None
        order.append(whose[1])
        turns.took(whose, 3.0 if whose[1] == "dear" else 1.0, 1, 0.0)
    assert order == ["ann", "dear", "ann", "ann", "ann", "dear", "ann", "ann"]


def test_a_count_that_is_too_high_is_mended_when_nothing_is_found() -> None:
    turns = Turns()
    turns.load({(0, "ann"): 5})
    known = turns.parked_of((0, "ann"))
    turns.parked([message("ann")])  # while it was looked for
    turns.took((0, "ann"), 0.0, known, 0.0)
    assert turns.waiting == 1
