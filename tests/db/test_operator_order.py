"""Orders of operators: who ordered what of which subject, and when."""

from wms.db import operator_order
from wms.db.database import Transaction


async def test_an_order_of_several_subjects_is_one_line_each(tx: Transaction) -> None:
    await operator_order.record(tx, "oz", "drop letters", ["1", "2"], "old news")
    await operator_order.record(tx, "ada", "skip", ["wms.job.commands/0@7"])
    rows = await operator_order.latest(tx, 10)
    assert [(row["operator"], row["action"], row["subject"], row["reason"]) for row in rows] == [
        ("ada", "skip", "wms.job.commands/0@7", ""),
        ("oz", "drop letters", "2", "old news"),
        ("oz", "drop letters", "1", "old news"),
    ]
    assert len(await operator_order.latest(tx, 1)) == 1


async def test_what_an_operator_writes_is_kept_printable(tx: Transaction) -> None:
    await operator_order.record(tx, "o\x1bz", "drop", ["\x00"], "x\x1b[2J")
    (row,) = await operator_order.latest(tx, 10)
    assert "".join(row["operator"] + row["subject"] + row["reason"]).isprintable()


async def test_old_orders_are_forgotten(tx: Transaction) -> None:
    await operator_order.record(tx, "oz", "drop", ["old", "new"])
    await tx.execute("update operator_order set ordered_at = now() - interval '2 d' where subject = 'old'")
    assert await operator_order.forget(tx, 86_400) == 1
    assert [row["subject"] for row in await operator_order.latest(tx, 10)] == ["new"]
