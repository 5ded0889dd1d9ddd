"""Orders to skip a message: stored once, claimed by one at a time, claimed anew when nobody finished them."""

from wms.db import skip_order
from wms.db.database import Transaction
from wms.db.offset import ConsumedTopic
from wms.db.skip_order import SkipRequest

WANTED = SkipRequest(operator="oz", feed=ConsumedTopic("k", "c", "t"), partition=1, offset=7, reason="slow")


async def test_an_order_is_one_job_managers_until_its_claim_ends(tx: Transaction) -> None:
    await skip_order.put(tx, WANTED)
    await skip_order.put(tx, WANTED)
    row = await skip_order.claim(tx, "k", 60)
    assert row is not None
    assert (row["consumer"], row["message_offset"], row["attempts"]) == ("c", 7, 1)
    assert await skip_order.claim(tx, "k", 60) is None
    await tx.execute("update skip_order set claimed_until = now() - interval '1 s'")
    again = await skip_order.claim(tx, "k", 60)
    assert again is not None
    assert again["attempts"] == 2
    await skip_order.finish(tx, again["skip_order_id"])
    await tx.execute("update skip_order set claimed_until = null")
    assert await skip_order.claim(tx, "k", 60) is None


async def test_orders_of_another_cluster_are_not_claimed_and_old_ones_go(tx: Transaction) -> None:
    await skip_order.put(tx, WANTED)
    assert await skip_order.claim(tx, "other", 60) is None
    assert await skip_order.forget(tx, 3_600) == 0
    await tx.execute("update skip_order set ordered_at = now() - interval '2 hours'")
    assert await skip_order.forget(tx, 3_600) == 1
