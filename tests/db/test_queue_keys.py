"""Task queues get the keys that this version computes, and lose none of their jobs by it."""

import asyncpg

from tests.db.test_upgrade import DUMPS, restore
from wms.audit.auditor import audit
from wms.db.migrate import migrate

DUMP = next(dump for dump in DUMPS if dump.name == "2bdd750.sql.gz")


async def test_queues_that_have_become_one_are_one_with_all_their_jobs(empty_database: str) -> None:
    """A queue has the same requirements under another key."""
    await restore(empty_database, DUMP)
    connection = await asyncpg.connect(empty_database)
    try:
        await connection.execute("""
            insert into task_queue (key, owner, owner_group, vo, cpu_segment, requirements)
            select sha256('another'), owner, owner_group, vo, cpu_segment, replace(requirements::text, '"never"', '"never", "never"')::jsonb
            from task_queue where requirements::text like '%"never"%'
        """)
        twin = '(select tq_id from task_queue where requirements::text like \'%"never", "never"%\')'
        await connection.execute(f"update job set tq_id = {twin} where state = 'Held'")
        await migrate(empty_database)
        assert not await connection.fetch(f"select 1 where {twin} is not null")
        held = await connection.fetchval("""
            select requirements::text from job join task_queue using (tq_id) where state = 'Held'
        """)
        assert '["never"]' in held
        report = await audit(empty_database)
        assert report.ok, report.text()
    finally:
        await connection.close()
