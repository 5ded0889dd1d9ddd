"""What limits let start, and no pilot beyond that."""

from tests.unit.matching.strategies import asks
from tests.unit.provisioning.elements import counts, element, elements, limited, of_owner, under_way
from wms.matching.limits import LimitRule
from wms.provisioning.demand import QueuedWork
from wms.provisioning.limit_headroom import ARRIVAL_SECONDS
from wms.provisioning.plan import plan


def test_pilots_are_sent_only_for_what_the_limits_let_start():
    made = plan([QueuedWork(asks(), 50)], elements(3), leeway=limited(of_owner("*", 5), o=3))
    assert sum(order.count for order in made.orders) == 2
    assert made.decisions[0].shares[0].held == "LIMIT"
    assert "owner=o at A" in made.decisions[0].shares[0].why


def test_a_limit_on_one_owner_leaves_the_others_their_pilots():
    queues = [QueuedWork(asks(owner="ann"), 10), QueuedWork(asks(owner="bob"), 4)]
    made = plan(queues, elements(1, slots=50), leeway=limited(of_owner("ann", 0)))
    assert counts(made) == {"ce0": 4}


def test_what_a_limit_holds_back_at_one_site_goes_to_another():
    ads = [element("here"), element("there", site="B")]
    made = plan([QueuedWork(asks(), 8)], ads, leeway=limited(of_owner("*", 3)))
    assert sum(counts(made).values()) == 8
    assert counts(made)["here"] <= 3


def test_pilots_under_way_use_up_what_the_limits_let_start():
    made = plan(
        [QueuedWork(asks(), 50)], [element()], [under_way(waiting=2)], leeway=limited(of_owner("*", 3))
    )
    assert counts(made) == {"ce0": 1}


def test_a_rate_counts_what_it_will_let_through_until_a_pilot_is_there():
    rate = LimitRule(kind="rate", site="A", attribute="owner", value="*", most=1, per_second=0.1)
    made = plan([QueuedWork(asks(), 50)], [element(slots=100)], leeway=limited(rate))
    assert counts(made) == {"ce0": 1 + ARRIVAL_SECONDS * 0.1}
