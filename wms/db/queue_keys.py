"""Computes the keys of stored task queues anew, after the way to compute them has changed. Queues with one key become one."""

from collections.abc import Iterable

import msgspec

from wms.db.database import Connection
from wms.db.sql import load
from wms.matching.grouping import Requirements, key

SQL = load(__file__)


async def recompute(connection: Connection) -> None:
    """Give each task queue the key of its requirements. Of queues with the same key the oldest gets the jobs of the others.

    It runs in the open transaction of the connection, while no service runs that computes keys in another way.
    """
    await connection.execute(SQL["lock"])
    rows = await connection.fetch(SQL["all"])
    by_key: dict[bytes, list[int]] = {}
    for row in rows:
        required = msgspec.json.decode(row["requirements"], type=Requirements)
        by_key.setdefault(key(required), []).append(row["tq_id"])
    oldest = {tq_id: ids[0] for ids in by_key.values() for tq_id in ids[1:]}
    if oldest:
        await _merge(connection, oldest.items())
    former = {row["tq_id"]: row["key"] for row in rows}
    changed = {ids[0]: found for found, ids in by_key.items() if former[ids[0]] != found}
    await connection.execute(SQL["unset"], list(changed))
    await connection.execute(SQL["set"], list(changed), list(changed.values()))


async def _merge(connection: Connection, oldest: Iterable[tuple[int, int]]) -> None:
    """Move the jobs of queues to others, and delete the first. `oldest` has pairs: the queue that goes, and the one that stays."""
    gone, staying = zip(*oldest, strict=True)
    await connection.execute(SQL["move_jobs"], gone, staying)
    await connection.execute(SQL["move_sweeps"], gone, staying)
    await connection.execute(SQL["revive"], gone, staying)
    await connection.execute(SQL["delete"], gone)
