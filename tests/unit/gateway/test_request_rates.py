"""Budgets of requests."""

from services.gateway.request_rates import RequestBudget


def test_a_burst_is_taken_and_then_the_rate() -> None:
    budget = RequestBudget(per_second=10, burst=5)
    assert [budget.spend("a", 100.0) for _ in range(5)] == [0.0] * 5
    wait = budget.spend("a", 100.0)
    assert 0.09 < wait < 0.11
    assert budget.spend("a", 100.0 + wait) == 0.0


def test_who_is_refused_spends_nothing() -> None:
    budget = RequestBudget(per_second=1, burst=1)
    assert budget.spend("a", 0.0) == 0.0
    waits = [budget.spend("a", 0.5) for _ in range(100)]
    assert set(waits) == {0.5}


def test_one_key_does_not_spend_for_another() -> None:
    budget = RequestBudget(per_second=1, burst=1)
    assert (budget.spend("a", 0.0), budget.spend("b", 0.0)) == (0.0, 0.0)


def test_a_long_pause_saves_up_no_more_than_a_burst() -> None:
    budget = RequestBudget(per_second=1, burst=2)
    budget.spend("a", 0.0)
    assert [budget.spend("a", 1e6) == 0.0 for _ in range(3)] == [True, True, False]
