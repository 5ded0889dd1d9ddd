"""Sizes of batches, budgets and turns of owners: pure."""

from tests.unit.bus.messages import message
from wms.bus.turns import BURST_SECONDS, PATIENCE_SECONDS, Turns


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
