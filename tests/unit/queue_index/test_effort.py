"""Effort: how many steps may still be made."""

from wms.queue_index.effort import Effort


def test_it_is_without_end_until_it_is_bounded() -> None:
    assert Effort().spend(1e18)


def test_the_last_may_take_more_than_is_left_and_then_it_is_spent() -> None:
    effort = Effort()
    effort.renew(10)
    assert [effort.spend(4) for _ in range(5)] == [True, True, True, False, False]
    effort.renew(1)
    assert effort.spend(4)


def test_what_is_known_may_be_looked_at_when_evaluations_are_spent() -> None:
    effort = Effort()
    effort.renew(1_000)
    assert effort.spend(5_000)
    assert [effort.spend(1), effort.look(20), effort.look(20), effort.look(1)] == [False, True, True, False]
