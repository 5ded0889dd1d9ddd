"""Identifies a request for a running job's output by who asked, what they asked for, and the pilot that is asked."""

from wms.messages.reports import Peeked
from wms.messages.site_inbox import Peek


def peeking(what: Peek | Peeked) -> tuple[str | int, ...]:
    """Return the values that the signed ticket of a request covers. They are the same for the order (Peek) and its answer (Peeked)."""
    return (
        what.pilot_id,
        what.job_id,
        what.epoch,
        what.stream,
        what.query_id,
        what.client,
        what.asker,
    )
