"""Work of a group, and the private pilots sent for it."""

from typing import Any

from tests.unit.matching.strategies import asks
from tests.unit.provisioning.elements import element
from wms.provisioning.demand import QueuedWork
from wms.provisioning.plan import plan
from wms.provisioning.private_groups import PrivateGroups

GROUP = "v", "g"


HERE = element(slots=10)


def work(jobs: int = 1, **asked: Any) -> QueuedWork:
    return QueuedWork(asks(**{"vo": "v", "owner_group": "g", "owner": "ann", **asked}), jobs)


def sent(*waiting: QueuedWork, pilots: Any = (), **groups: Any) -> dict[str, int]:
    known = PrivateGroups(**{name: frozenset({GROUP}) for name in groups})
    found = plan(waiting, [HERE], pilots, private=known).orders
    return {order.private.text if order.private else "all": order.count for order in found}
