"""Housekeeping: removes long-empty task queues and unreferenced sandboxes."""

import structlog

from services.job_manager.config import QueueSettings, SandboxStoreSettings
from wms.db import sandbox, task_queue
from wms.db.database import Database
from wms.transfer.store import open_store

log = structlog.get_logger()


class Housekeeping:
    """Removes unused rows and files."""

    def __init__(self, db: Database, queues: QueueSettings, sandboxes: SandboxStoreSettings) -> None:
        self._db = db
        self._queues = queues
        self._sandboxes = sandboxes

    async def remove_empty_queues(self) -> None:
        """Remove task queues that have been empty for long."""
        async with self._db.transaction() as tx:
            removed = await task_queue.remove_long_empty(tx, self._queues.removed_when_empty_seconds)
        if removed:
            log.info("task queues removed", queues=removed)

    async def collect_sandboxes(self) -> None:
        """Delete sandboxes that no job refers to and that are not new."""
        if not self._sandboxes.url:
            return
        async with self._db.transaction() as tx:
            referenced = await sandbox.referenced(tx)
        store = open_store(self._sandboxes.url)
        deleted = await store.delete_unreferenced(referenced, self._sandboxes.kept_unreferenced_seconds)
        if deleted.objects:
            log.info("sandboxes deleted", sandboxes=deleted.objects, bytes=deleted.bytes)
