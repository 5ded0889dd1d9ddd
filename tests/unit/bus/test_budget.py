"""A budget: a burst, and then a rate."""

from wms.bus.budget import Budget


def test_a_budget_is_a_burst_and_then_a_rate() -> None:
    budget = Budget(rate=10, burst=100)
    assert budget.seconds_until("ann", 100, 0.0) == 0
    budget.spend("ann", 100, 0.0)
    assert budget.seconds_until("ann", 20, 0.0) == 2
    assert budget.seconds_until("ann", 20, 2.0) == 0
    assert budget.left("ben", 0.0) == 100
    assert budget.left("ann", 1_000.0) == 100
