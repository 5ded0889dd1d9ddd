"""Elements, pilots under way, and what plans order for them."""

from typing import Any

from wms.matching.limits import Count, LimitKey, LimitRule, LimitSet
from wms.provisioning.limit_headroom import LimitHeadroom
from wms.provisioning.plan import Plan
from wms.provisioning.supply import PilotSupply
from wms.site import ComputingElement


def element(ce: str = "ce0", **fields: Any) -> ComputingElement:
    given: dict[str, Any] = {"site": "A", "ce": ce, "setup": "s", "slots": 10, "max_cpu_time": 1_000}
    given.update(fields)
    return ComputingElement(**given)


def elements(number: int, **fields: Any) -> list[ComputingElement]:
    return [element(f"ce{n}", **fields) for n in range(number)]


def under_way(ce: str = "ce0", **fields: Any) -> PilotSupply:
    return PilotSupply(**({"site": "A", "ce": ce, "vo": "v"} | fields))


def counts(made: Plan) -> dict[str, int]:
    return {decision.ce: decision.ordered for decision in made.decisions}


def limited(*limits: LimitRule, **running: int) -> LimitHeadroom:
    counts = {LimitKey("A", "", "owner", owner): Count(running=jobs) for owner, jobs in running.items()}
    return LimitHeadroom(LimitSet(limits), counts)


def of_owner(owner: str, most: int) -> LimitRule:
    return LimitRule(site="A", attribute="owner", value=owner, most=most)
