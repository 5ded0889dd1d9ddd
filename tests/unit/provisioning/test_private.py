"""The planner and private pilots: for whose work they are sent, and for which work those that there are count."""

from tests.unit.provisioning.private_work import HERE, sent, work
from wms.provisioning.plan import PilotCaps, plan
from wms.provisioning.private import PilotOrder, allocate
from wms.provisioning.supply import PilotSupply
from wms.site import PilotOwner, private


def there(owner: PilotOwner | None, idle: int = 1, *, sharing: bool = False) -> PilotSupply:
    resource = HERE.pilot_resource(vo="v")
    if owner:
        resource = private(resource, owner, job_sharing=sharing)
    return PilotSupply(site=HERE.site, ce=HERE.ce, vo="v", running=idle, idle_slots=idle, resource=resource)


def test_a_private_pilot_counts_for_its_owners_work_alone() -> None:
    ann = there(PilotOwner("g", "ann"), 2)
    assert sent(work(1), work(1, owner="bob"), pilots=[ann], present=True) == {"all": 1}
    whole = there(PilotOwner("g"), 2, sharing=True)
    assert sent(work(1), work(1, owner="bob"), pilots=[whole], present=True, sharing=True) == {}
    assert sent(work(1, owner_group="h"), pilots=[whole], present=True, sharing=True) == {"all": 1}


def test_idle_generic_pilots_take_up_what_may_run_there() -> None:
    assert sent(work(2), pilots=[there(None, 2)], senders=True) == {}
    asked = work(2, pilot_types=("private",))
    assert sent(asked, pilots=[there(None, 2)], senders=True) == {"ann@g": 2}


def test_nobody_is_sent_private_pilots_that_nobody_ordered() -> None:
    found = plan([work(2, pilot_types=("private",))], [HERE])
    assert (found.orders, "private" in found.unservable[0].reasons[0]) == ((), True)


def test_orders_go_in_turns_and_get_half_of_the_cap() -> None:
    orders = [
        PilotOrder(order_id=n, vo="v", owner_group="g", owner=owner, missing=9)
        for n, owner in ((1, "ann"), (2, "ann"), (3, "bob"))
    ]
    found = allocate(orders, [HERE], [], PilotCaps(pilots=8), {})
    assert sorted(each.order.owner for each in found.pilots) == ["ann", "ann", "bob", "bob"]
    assert found.held.keys() == {1, 2, 3}
    assert allocate(orders, [HERE], [there(PilotOwner("g", "ann"), 4)], PilotCaps(pilots=8), {}).pilots == ()
    full = there(None, 10)
    assert "no room" in allocate(orders, [HERE], [full], PilotCaps(), {}).held[1]
