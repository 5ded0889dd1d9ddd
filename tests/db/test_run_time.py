"""Run times of queues: kept, changed, and told to whoever asks what is new."""

from wms.db import run_time
from wms.db.database import Transaction
from wms.ids import TaskQueueId
from wms.matching.run_time import RunTime


async def test_what_was_written_last_is_read(tx: Transaction) -> None:
    await tx.execute(
        "insert into task_queue (key, owner, owner_group, vo, cpu_segment, requirements)"
        " select sha256(n::text::bytea), 'a', 'g', 'v', 1, '{}' from generate_series(1, 2) as n"
    )
    one, two = [
        TaskQueueId(row["tq_id"]) for row in await tx.fetch("select tq_id from task_queue order by tq_id")
    ]
    assert await run_time.changed(tx, None) == ({}, None)
    await run_time.write(tx, {})
    await run_time.write(tx, {one: RunTime(1.0, 0.5), two: RunTime(2.0, 1.0)})
    await run_time.write(tx, {one: RunTime(3.0, 0.5)})
    found = {one: RunTime(3.0, 0.5), two: RunTime(2.0, 1.0)}
    assert await run_time.read(tx, [one, two]) == found
    news, since = await run_time.changed(tx, None)
    assert news == found
    await tx.execute("update run_time set changed_at = now() - interval '1 min' where tq_id = $1", two)
    assert await run_time.changed(tx, since) == ({one: found[one]}, since)
