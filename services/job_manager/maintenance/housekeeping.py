"""Deletes what is no longer used: task queues that are empty for long, and sandboxes that no job refers to."""

import structlog

from services.job_manager.config import QueueSettings, SandboxStoreSettings
from wms.db import sandbox, task_queue
from wms.db.database import Database
from wms.transfer.store import open_store

log = structlog.get_logger()


class Housekeeping:
    """Deletes empty task queues and unused sandboxes, at the ages that the configuration gives."""

    def __init__(self, db: Database, queues: QueueSettings, sandboxes: SandboxStoreSettings) -> None:
        self._db = db
        self._queues = queues
        self._sandboxes = sandboxes

    async def remove_empty_queues(self) -> None:
        """Delete the task queues that have had no jobs for `removed_when_empty_seconds`."""
        async with self._db.transaction() as tx:
            removed = await task_queue.remove_long_empty(tx, self._queues.removed_when_empty_seconds)
        if removed:
            log.info("task queues removed", queues=removed)

    async def collect_sandboxes(self) -> None:
        """Delete the sandboxes that no job refers to and that are older than the configured age. Without a store's URL nothing happens."""
        if not self._sandboxes.url:
            return
        async with self._db.transaction() as tx:
            referenced = await sandbox.referenced(tx)
        store = open_store(self._sandboxes.url, self._sandboxes.s3)
        kept_seconds = self._sandboxes.kept_unreferenced_seconds
        deleted = await store.delete_unreferenced(referenced, kept_seconds)
        async with self._db.transaction() as tx:
            await sandbox.forget_claims(tx, kept_seconds, referenced)
        if deleted.objects:
            log.info("sandboxes deleted", sandboxes=deleted.objects, bytes=deleted.bytes)
