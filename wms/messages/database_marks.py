"""The topic `wms.database.marks`: how old the database was that services last worked with. One partition, the last mark of each incarnation.

A database that is restored knows fewer marks than the log. So the job managers notice that the log tells of what the restore has undone.
"""

import msgspec

from wms.bounds import Count, MessageId, Moment
from wms.ids import JobId

TOPIC = "wms.database.marks"


class DatabaseMark(msgspec.Struct, frozen=True, kw_only=True, tag="database-mark"):
    """The state of the database at one moment. Key: the incarnation."""

    incarnation_id: MessageId
    """The random id of the database's incarnation. A restored database begins another one."""
    age: Count
    """How many marks the incarnation had, this one included. The database stores it before the mark is sent."""
    last_job_id: JobId
    """The highest job id that was given out."""
    marked_at: Moment
    """When the database stored the mark, by its own clock."""
