"""What the planner last decided of elements, for people who ask why."""

from datetime import timedelta
from typing import Any

from wms.db import ce_plan
from wms.db.database import Transaction
from wms.ids import CeId
from wms.provisioning.plan_report import ElementDecision, WorkDecision


def decision(site: str, ce: str, ordered: int = 1, **more: Any) -> ElementDecision:
    return ElementDecision(site=site, ce=ce, ordered=ordered, reasons=("why",), **more)


WORK = WorkDecision(
    vo="v", cpu_segment=500, processors=2, wanted=9, taken=3, sent=1, elsewhere=2, held="CAP", why="full"
)


async def test_a_decision_is_read_as_it_was_written(tx: Transaction) -> None:
    made = decision("A", "ce", shares=(WORK,), room=7)
    await ce_plan.write(tx, [made])
    [(decided_at, found)] = await ce_plan.read(tx)
    assert found == made
    assert abs(await tx.now() - decided_at) < timedelta(seconds=10)


async def test_the_last_decision_of_each_element_is_kept(tx: Transaction) -> None:
    await ce_plan.write(tx, [decision("B", "x"), decision("A", "y"), decision("A", "x")])
    await ce_plan.write(tx, [decision("A", "x", 5)])
    assert [(each.site, each.ce, each.ordered) for _, each in await ce_plan.read(tx)] == [
        ("A", "x", 5),
        ("A", "y", 1),
        ("B", "x", 1),
    ]
    assert [each.ce for _, each in await ce_plan.read(tx, "B")] == ["x"]


async def test_elements_that_are_planned_for_no_more_are_forgotten(tx: Transaction) -> None:
    await ce_plan.write(tx, [decision("A", "x"), decision("B", "x")])
    await ce_plan.keep_only(tx, [CeId("B", "x"), CeId("C", "new")])
    assert [each.site for _, each in await ce_plan.read(tx)] == ["B"]
    await ce_plan.write(tx, [])
    await ce_plan.keep_only(tx, [])
    assert await ce_plan.read(tx) == []
